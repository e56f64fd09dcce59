"""Panels as SVG: as files for papers, and inside a page, where colours follow the page's theme."""

import re
from collections.abc import Iterable
from io import BytesIO
from typing import Final
from xml.etree import ElementTree as ET

from markupsafe import Markup
from matplotlib.figure import Figure as Canvas

from propensitybench.escaping import visible
from propensitybench.pages.figures.panels import Panel, compose
from propensitybench.pages.style import COLOURS, FAINT, INK, RULE, styled

# The page's own colours, which differ between light and dark.
_THEME: Final = {
    INK.lower(): "var(--ink)",
    FAINT.lower(): "var(--soft)",
    RULE.lower(): "var(--line)",
    "#ffffff": "var(--card)",
    **{colour.lower(): f"var(--run-{place})" for place, colour in enumerate(COLOURS)},
}
# Written near the beginning of every file.
MAKER: Final = "PropensityBench figures"
# matplotlib writes what `set_gid` was given as an id, and numbers everything else.
_TITLED: Final = re.compile(rb'<g id="([^"]*: [^"]*)">')
_NAMESPACE: Final = re.compile(r"\{[^}]*\}")
_COLOUR: Final = re.compile("|".join(_THEME))
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
# What the page says of text instead; titles, which are a little larger in files, are bold there.
_TEXT: Final = {
    "font-size: 7px": "",
    "font-size: 8px": "font-weight: 600",
    "font-family: 'DejaVu Sans', sans-serif": "",
    "font-weight: bold": "font-weight: 600",
    "fill: #222222": "",
    "text-anchor: start": "",
}


def svg_of(canvas: Canvas, about: dict[str, str]) -> bytes:
    """A drawn figure as an SVG file; marks tell their numbers when pointed at."""
    image = BytesIO()
    canvas.savefig(image, format="svg", metadata={**about, "Creator": MAKER, "Date": None})
    return _TITLED.sub(rb"<g><title>\1</title>", image.getvalue())


def figure_element(caption: str, panels: Iterable[Markup]) -> Markup:
    """Panels with their caption as an element of an HTML page."""
    element = Markup('<figure><div class="charts">{}</div><figcaption>{}</figcaption></figure>')
    return element.format(Markup("").join(panels), visible(caption))


def panel_svg(panel: Panel) -> Markup:
    """A panel as an element of an HTML page."""
    with styled():
        return inline_svg(svg_of(compose([panel]), {"Title": panel.title}), panel.name)


def inline_svg(image: bytes, name: str) -> Markup:
    """The file of a figure as an element of an HTML page; ``name`` makes its ids unique there."""
    root = ET.fromstring(image)
    title = root.findtext("{*}title", "")
    kept = set(re.findall(r"#([\w.]+)", image.decode()))
    _simplify(root, name, kept)
    children = [child for child in root if child.tag not in ("title", "metadata")]
    root[:] = children
    root.attrib = {"class": "drawn", "viewBox": root.attrib["viewBox"], "role": "img", "aria-label": title}
    return Markup(ET.tostring(root, encoding="unicode"))


def _simplify(element: ET.Element, name: str, kept: set[str]) -> None:
    """Makes an element short, its ids unique in the page, and its colours those of the page."""
    children: list[ET.Element] = []
    for child in element:
        if child.get("id") == "patch_1":
            continue  # the background
        _simplify(child, name, kept)
        bare = child.tag == "g" and not child.attrib and child.find("title") is None
        children += list(child) if bare else [] if child.tag == "style" else [child]
    element[:] = children
    element.tag = _NAMESPACE.sub("", element.tag)
    own = {_NAMESPACE.sub("", key): value for key, value in element.attrib.items()}
    for key, value in own.items():
        if key == "id":
            own[key] = f"{name}-{value}" if value in kept else ""
        elif key in ("href", "clip-path"):
            own[key] = value.replace("#", f"#{name}-")
        elif key == "style":
            # What a mark refers to takes its style from the mark.
            own[key] = "" if element.tag == "path" and "id" in own else _themed(value, element.tag)
        elif value.startswith("rotate(-0 "):
            own[key] = ""
        elif key not in ("viewBox", "width", "height"):
            own[key] = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}", " ".join(value.split()))
    element.attrib = {key: value for key, value in own.items() if value}
    element.text = element.text if (element.text or "").strip() else None
    element.tail = None


def _themed(style: str, tag: str) -> str:
    found = (_TEXT.get(one, one) if tag == "text" else one for one in style.split("; "))
    return "; ".join(_COLOUR.sub(lambda colour: _THEME[colour[0]], one) for one in found if one)

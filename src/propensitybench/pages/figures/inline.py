"""Figures inside a page: SVG whose colours follow the page's theme."""

import re
from io import BytesIO
from typing import Final

from propensitybench.escaping import html
from propensitybench.pages.figures.layout import Drawing, compose
from propensitybench.pages.style import COLOURS, FAINT, INK, RULE, styled

# The page's own colours, which differ between light and dark.
_THEME: Final = {
    INK.lower(): "var(--ink)",
    FAINT.lower(): "var(--soft)",
    RULE.lower(): "var(--line)",
    "#ffffff": "var(--page)",
    **{colour.lower(): f"var(--run-{place})" for place, colour in enumerate(COLOURS)},
}
_COLOUR: Final = re.compile("|".join(map(re.escape, _THEME)))
_REMOVED: Final = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", re.DOTALL)
_IDS: Final = re.compile(r'(\bid="|href="#|url\(#)')
_HEAD: Final = re.compile(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>')


def inline_svg(drawing: Drawing, name: str) -> str:
    """The drawing as an SVG element for an HTML page.

    Args:
        drawing: what to draw.
        name: put in front of every id, which must be unique in the page.
    """
    image = BytesIO()
    with styled():
        compose(drawing).savefig(
            image, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = image.getvalue().decode()
    text = _REMOVED.sub("", text[text.index("<svg") :])
    text = _IDS.sub(rf"\g<1>{name}-", text)
    text = _COLOUR.sub(lambda found: _THEME[found.group(0)], text)
    head = f'<svg class="drawn" viewBox="\\1" role="img" aria-label="{html(drawing.caption)}">'
    return _HEAD.sub(lambda found: head.replace("\\1", found.group(1)), text, count=1)

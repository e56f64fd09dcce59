"""HTML pages parsed for tests: elements, texts, links and scripts."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = frozenset(("meta", "br", "input", "link", "img", "hr"))


@dataclass
class Element:
    """An element; ``text`` is the text of everything within it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class HtmlPage(HTMLParser):
    """A page; ``elements`` are in document order."""

    source: str
    elements: list[Element] = field(default_factory=list)
    _open: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements with a tag and attribute values; ``klass`` is one of the element's classes."""
        required = dict(attributes)
        klass = required.pop("klass", None)
        return [
            element
            for element in self.elements
            if element.tag == tag
            and (klass is None or klass in element.attributes.get("class", "").split())
            and all(element.attributes.get(name) == value for name, value in required.items())
        ]

    @property
    def ids(self) -> list[str]:
        """Every id, in document order."""
        return [element.attributes["id"] for element in self.elements if "id" in element.attributes]

    @property
    def links(self) -> list[str]:
        """Every URL in the page."""
        return [
            element.attributes[name]
            for element in self.elements
            for name in ("href", "src", "action", "data", "poster", "srcset", "formaction")
            if name in element.attributes
        ]


def read_page(path: Path) -> HtmlPage:
    """The page in a file."""
    return HtmlPage(path.read_text(encoding="utf-8"))


def dead_links(page: HtmlPage, path: Path) -> list[str]:
    """The links of a page to a file or an anchor that does not exist."""
    dead = []
    for link in page.links:
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        if not target.is_file() or (
            anchor and f'id="{anchor}"' not in target.read_text(encoding="utf-8").replace("'", '"')
        ):
            dead.append(link)
    return dead

"""The documentation site: the reference of the Python interface, and links that lead out of docs/."""

import inspect
import re
from pathlib import Path
from typing import Final

import pytest
from hooks import moved, shown
from mkdocs.config import load_config

import propensitybench

DOCS: Final = Path(__file__).parents[1] / "docs"
REPOSITORY: Final = "https://example.org/somebody/propensitybench"


def test_no_program_is_published() -> None:
    left_out = load_config(str(DOCS.parent / "mkdocs.yml")).exclude_docs
    assert left_out is not None
    assert all(map(left_out.match_file, ("hooks.py", "__pycache__/hooks.cpython-311.pyc")))


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))
    named = re.findall(r"^::: propensitybench\.(\w+)$", pages, re.MULTILINE)
    assert sorted(named) == propensitybench.__all__


@pytest.mark.parametrize("name", propensitybench.__all__)
def test_every_field_of_a_public_class_is_described(name: str) -> None:
    about = getattr(propensitybench, name)
    fields = next(
        (
            tuple(getattr(about, kind))
            for kind in ("__struct_fields__", "model_fields", "__dataclass_fields__")
            if inspect.isclass(about) and hasattr(about, kind)
        ),
        (),
    )
    described = inspect.getmro(about) if inspect.isclass(about) else (about,)
    text = "\n".join(inspect.getdoc(one) or "" for one in described)
    assert [field for field in fields if not re.search(rf"^    {field}: .", text, re.MULTILINE)] == []


@pytest.mark.parametrize(
    ("text", "here", "source", "without", "with_address"),
    [
        # from a page of docs/ to another, to a page made of a file at the root, and to source
        ("[a](concepts.md#x)", "docs/b.md", "b.md", "[a](concepts.md#x)", None),
        ("[a](../SECURITY.md)", "docs/b.md", "b.md", "[a](security.md)", None),
        ("[a](../../README.md)", "docs/api/b.md", "api/b.md", "[a](../index.md)", None),
        (
            "see [errors](../src/propensitybench/errors.py).",
            "docs/b.md",
            "b.md",
            "see errors.",
            f"see [errors]({REPOSITORY}/blob/main/src/propensitybench/errors.py).",
        ),
        # from the root
        ("[a](docs/concepts.md)", "README.md", "index.md", "[a](concepts.md)", None),
        ("![a](docs/assets/b.png)", "README.md", "index.md", "![a](assets/b.png)", None),
        (
            "[CONTRIBUTING.md](CONTRIBUTING.md)",
            "README.md",
            "index.md",
            "[Contributing](contributing.md)",
            None,
        ),
        # named by the page's title
        ("[docs/concepts.md](docs/concepts.md)", "README.md", "index.md", "[Concepts](concepts.md)", None),
        # left alone: other sites, sections, and what does not exist, which the build reports
        ("[a](https://example.org)", "README.md", "index.md", "[a](https://example.org)", None),
        ("[a](#section)", "README.md", "index.md", "[a](#section)", None),
        ("[a](../no/such.py)", "docs/b.md", "b.md", "[a](../no/such.py)", None),
    ],
)
def test_links_lead_to_the_site_or_to_the_repository(
    text: str, here: str, source: str, without: str, with_address: str | None
) -> None:
    assert moved(text, here, source, "") == without
    assert moved(text, here, source, REPOSITORY) == (with_address or without)


def test_a_figure_is_shown_with_its_description() -> None:
    comment = '<!-- figure: figures/a.svg | Lines of "two" agents -->'
    assert shown(comment) == "![Lines of &quot;two&quot; agents](figures/a.svg){ .figure }"

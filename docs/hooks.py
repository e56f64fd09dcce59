"""Hooks of the documentation site: pages from files outside of docs/, links to such files, and figures."""

import os
import posixpath
import re
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from executed import FIGURE, run_page  # noqa: E402 - mkdocs loads this file from its path

# Pages of the site by the file of the repository that they are made of.
PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_FENCE: Final = re.compile(r"(^```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
_ADDRESS: Final = re.compile(r"[a-z]+:|#")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made of files at the root of the repository, and the figures."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        # The front page is alone in its part of the site: its list of pages would only take room.
        head = "---\nhide: [navigation]\n---\n" if page == "index.md" else ""
        files.append(File.generated(config, page, content=head + text))
    for file in files.documentation_pages():
        if FIGURE.search(file.content_string):
            for path, content in made_figures(file.content_string).items():
                files.append(File.generated(config, _beside(file.src_uri, path), content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Points links at what is on the site, and shows figures."""
    del files
    source = page.file.src_uri
    here = {made: name for name, made in PAGES.items()}.get(source, f"docs/{source}")
    parts = _FENCE.split(markdown)  # every other part is a block of code
    parts[::2] = [shown(moved(text, here, source, config.repo_url or "")) for text in parts[::2]]
    return "".join(parts)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Names the theme's search dialog for screen readers."""
    del page, config
    return output.replace('data-md-component="search"', 'data-md-component="search" aria-label="Search"')


def made_figures(page: str) -> dict[str, bytes]:
    """The figures of a page by their paths, made by its code."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with TemporaryDirectory() as folder:
        run_page(page, Path(folder), {**os.environ, "PATH": programs})
        return {found["path"]: Path(folder, found["path"]).read_bytes() for found in FIGURE.finditer(page)}


def shown(text: str) -> str:
    """The text with its figures shown."""
    return FIGURE.sub(lambda found: f"![{escape(found['about'])}]({found['path']}){{ .figure }}", text)


def moved(text: str, here: str, source: str, repository: str) -> str:
    """The text with links that lead to the right place on the site.

    Args:
        text: Markdown without blocks of code.
        here: the file's path in the repository.
        source: the page's path on the site.
        repository: address of the repository. Without it, links to files that are not on the site
            become plain text.
    """

    def place(link: re.Match[str]) -> str:
        label, address = link[1], link[2]
        if _ADDRESS.match(address):
            return link[0]
        path, _, anchor = address.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
        on_site = target.startswith("docs/") and target.endswith((".md", ".png"))
        page = target.removeprefix("docs/") if on_site else PAGES.get(target)
        if page is not None:
            there = posixpath.relpath(page, posixpath.dirname(source) or ".")
            if label in (target, posixpath.basename(target)):
                label = title(ROOT / target)
            return f"[{label}]({there}{'#' if anchor else ''}{anchor})"
        if not (ROOT / target).exists():
            return link[0]  # the build reports it
        return f"[{label}]({repository.rstrip('/')}/blob/main/{target})" if repository else label

    return _LINK.sub(place, text)


def title(page: Path) -> str:
    """The heading of a page; a file that does not exist, which the build reports, has its name."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1] if found else page.name


def _beside(page: str, path: str) -> str:
    return posixpath.join(posixpath.dirname(page), path)

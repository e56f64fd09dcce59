"""Templates of pages: one base, one policy, one way to escape."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import Any, Final

import jinja2
from markupsafe import Markup

from propensitybench.escaping import visible

# Of every page: it sets the theme before anything is shown.
THEME: Final = "theme.js"


def render(
    name: str, *, styles: Sequence[str] | None = (), scripts: Sequence[str] = (), **values: Any
) -> str:
    """A page from a template that extends ``base.html.j2``.

    Args:
        name: the template, an asset.
        styles: assets that the page has besides ``base.css``; None if its template links to a file of them.
        scripts: assets that it has besides `THEME`, in the order of dependence.
        values: what the template shows. Every value is escaped unless it is `Markup`.
    """
    inline = [asset(script) for script in (THEME, *scripts)]
    return (
        _templates()
        .get_template(name)
        .render(
            policy=policy(inline, "'self' file:" if styles is None else "'unsafe-inline'"),
            styles=Markup("".join(map(asset, ("base.css", *(styles or ()))))),
            theme=Markup(inline[0]),
            scripts=[Markup(script) for script in inline[1:]],
            **{"package": _package(), **values},
        )
    )


@cache
def asset(name: str) -> str:
    """The text of one of the assets."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def policy(scripts: Sequence[str], styles: str = "'unsafe-inline'") -> str:
    """The Content-Security-Policy that allows these inline scripts, these sources of styles, and no more."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {styles}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _package() -> str:
    return version("propensitybench")


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:
    """Makes control characters visible; markup of our own passes unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

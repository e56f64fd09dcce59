"""Templates of pages."""

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from propensitybench.escaping import visible
from propensitybench.pages.transcripts import asset


@cache
def page_template(name: str) -> jinja2.Template:
    """A template among the assets, in which every value is escaped unless it is `Markup`."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    return environment.from_string(asset(name))


def _finalize(value: Any) -> Any:
    """Makes control characters visible; markup of our own passes unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

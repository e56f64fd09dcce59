"""The prompts, which are templates in the folder ``prompts``."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(name: str, **values: object) -> str:
    """The text of a prompt with its values."""
    return _environment().get_template(f"{name}.md.j2").render(values).strip() + "\n"


@cache
def source(name: str) -> str:
    """The template of a prompt."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, f"{name}.md.j2")[0]


@cache
def _environment() -> Environment:
    # The prompts are text for a model, never HTML.
    return Environment(
        loader=PackageLoader("propensitybench.generation", "prompts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        autoescape=False,
    )

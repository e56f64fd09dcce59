"""System message templates: a part of Jinja that cannot run code, loop or grow.

A run file from somebody else brings its own template, so a template gets strings only and may use nothing
that takes more than one pass over them: output, ``if``, comparisons and a few filters.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from propensitybench.errors import BadInput

# The built-in templates have up to 1.2 thousand characters and 28 nodes, 3 deep.
MAX_TEMPLATE: Final = 32_768
MAX_MESSAGE: Final = 262_144
MAX_NODES: Final = 1_000
# Jinja's time to compile an expression grows with the cube of its depth, and Python refuses 100 indentations.
MAX_DEPTH: Final = 24
# Python refuses to print integers of many digits, and Jinja writes infinity as a name.
MAX_NUMBER: Final = 2**53
FILTERS: Final = frozenset(("upper", "lower", "capitalize", "title", "trim", "default", "length"))
_ALLOWED: Final = (
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Const,
    nodes.If,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Filter,
)
Texts = Mapping[str, str | Mapping[str, str]]


class _Environment(ImmutableSandboxedEnvironment):
    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ARG002
        """No attribute at all: ``policy.role`` is a key of a mapping."""
        return False

    def is_safe_callable(self, obj: Any) -> bool:  # noqa: ARG002
        """Nothing can be called."""
        return False


_ENVIRONMENT: Final = _Environment(undefined=jinja2.StrictUndefined, autoescape=False)


def render(source: str, texts: Texts) -> str:
    """The text of a template.

    Args:
        source: the template.
        texts: strings, and mappings of strings, by name.

    Raises:
        BadInput: the template has a syntax error, uses an unknown name or what templates may not use, or is
            too long.
    """
    template = _compiled(source)
    parts: list[str] = []
    length = 0
    try:
        for part in template.generate(texts):
            length += len(part)
            if length > MAX_MESSAGE:
                raise BadInput(f"system message template: gives more than {MAX_MESSAGE} characters")
            parts.append(part)
        text = "".join(parts)
        text.encode()  # a literal may hold half of a surrogate pair
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise BadInput(f"system message template: {error}") from error
    return text


@lru_cache(maxsize=8)
def _compiled(source: str) -> jinja2.Template:
    if len(source) > MAX_TEMPLATE:
        raise BadInput(f"system message template: has {len(source)} characters; {MAX_TEMPLATE} are allowed")
    try:
        _check_tree(_ENVIRONMENT.parse(source))
        return _ENVIRONMENT.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise BadInput(f"system message template, line {error.lineno}: {error.message}") from error
    except RecursionError as error:
        raise BadInput("system message template: is nested too deeply") from error
    except ValueError as error:  # Python's limit on the digits of an integer
        raise BadInput("system message template: has a number with too many digits") from error


def _check_tree(parsed: nodes.Template) -> None:
    """Checks every node, and what compiling takes, one depth after the other."""
    count = depth = 0
    level: list[nodes.Node] = [parsed]
    while level := [child for node in level for child in node.iter_child_nodes()]:
        for node in level:
            _check(node)
        count += len(level)
        depth += 1
        if depth > MAX_DEPTH:
            raise BadInput(
                f"system message template, line {level[0].lineno}: is nested more than {MAX_DEPTH} deep"
            )
    if count > MAX_NODES:
        raise BadInput(
            f"system message template: has {count} values, conditions and filters; {MAX_NODES} are allowed"
        )


def _check(node: nodes.Node) -> None:
    if not isinstance(node, _ALLOWED):
        raise BadInput(
            f"system message template, line {node.lineno}: {type(node).__name__.lower()} is not allowed; use "
            "values, if, comparisons and the filters " + ", ".join(sorted(FILTERS))
        )
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        raise BadInput(
            f"system message template, line {node.lineno}: filter {node.name!r} is not allowed; allowed: "
            + ", ".join(sorted(FILTERS))
        )
    if isinstance(node, nodes.Const) and isinstance(node.value, int | float) and abs(node.value) > MAX_NUMBER:
        raise BadInput(f"system message template, line {node.lineno}: a number is above {MAX_NUMBER}")

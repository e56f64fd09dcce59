"""Templates of strangers: they get texts, and can neither run code nor waste time or memory."""

import pickle
from pathlib import Path

import pytest
from helpers.play import scenario

from propensitybench.episode import built_in_template, system_message
from propensitybench.episode.template import MAX_MESSAGE, MAX_TEMPLATE
from propensitybench.episode.tools import Toolbox
from propensitybench.errors import BadInput
from propensitybench.taxonomy import NAMINGS, Naming


class Payload:
    """What writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.write_text, (self._path, "executed")


def test_a_template_cannot_unpickle(tmp_path: Path) -> None:
    raw = pickle.dumps(Payload(tmp_path / "mark"), protocol=0).decode()
    attack = f"{{{{ policy.parse_raw({raw!r}, proto='pickle', allow_pickle=True) }}}}"
    with pytest.raises(BadInput, match="call is not allowed"):
        system_message(attack, scenario(), "harmful")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "source",
    [
        "{{ policy.model_dump() }}",
        "{{ role.format(role) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ policy.items }}",
        "{{ role | format(1) }}",
        "{{ 'x' | center(1000000000) }}",
        "{{ role | replace('', role) }}",
        "{{ 'x' * 1000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ role ~ role }}",
        "{% set x = role %}{{ x }}",
        "{% for a in known %}{% for b in known %}{{ a }}{% endfor %}{% endfor %}",
        "{% for i in range(1000000000) %}{{ i }}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ self }}{{ self.__init__ }}",
        "{{ role[0:5] }}",
        "{{ " + "(" * 5000 + "role" + ")" * 5000 + " }}",
        "{% if role %}" * 3000 + "{% endif %}" * 3000,
        "x" * (MAX_TEMPLATE + 1),
        "{{ known }}" * 900,
        "{{ role }}" * 2500,
        "{{ " + "not " * 300 + "task }}",
        ("{{ " + "not " * 190 + "task }}") * 42,
        "{{ role" + "[0]" * 300 + " }}",
        "{% if role %}" * 110 + "{% endif %}" * 110,
        "{{ " + "9" * 6000 + " }}",
        "{{ 0x" + "f" * 6000 + " }}",
        "{% if role == 1e400 %}{% endif %}",
        r"{{ '\ud800' }}",
    ],
)
def test_what_could_run_or_grow_is_refused_in_one_sentence(source: str) -> None:
    large = scenario().model_copy(update={"known": {"text": "y" * (MAX_MESSAGE // 400)}})
    with pytest.raises(BadInput, match=r"^system message template") as refused:
        system_message(source, large, "harmful")
    assert "\n" not in str(refused.value)


def test_values_conditions_and_filters_work() -> None:
    source = "{% if policy.role != '' and not consequences == '' %}{{ role | upper }}{% else %}no{% endif %}"
    assert system_message(source, scenario(), "benign") == scenario().role.replace("-", " ").upper()
    built_in = system_message(built_in_template(), scenario(), "harmful")
    assert scenario().misaligned.harmful.name in built_in


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_unnamed_template_forbids_the_act_and_names_no_tool(naming: Naming) -> None:
    one = scenario()
    text = system_message(built_in_template("unnamed"), one, naming)
    assert one.policy.prohibitions in text
    for name in {tool.name for tool in Toolbox(one, naming).specs}:
        assert name not in text
    assert one.misaligned.acknowledgement not in text

"""Questions as files."""

from pathlib import Path

import pytest

from propensitybench.errors import BadInput
from propensitybench.judging.questions import question_names, read_question

FILE = """
format = "propensitybench-question/1"
name = "tone"
title = "tone of the agent"
about = "scored"
sees = "words"
none = "calm"
text = "What is the agent's tone?"
[[categories]]
name = "calm"
definition = "It is calm."
[[categories]]
name = "angry"
definition = "It is angry."
"""


def written(folder: Path, text: str) -> str:
    path = folder / "tone.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_built_in_questions_are_complete() -> None:
    questions = [read_question(name) for name in question_names()]
    assert [one.name for one in questions] == ["awareness", "justification", "noticed-rule"]
    assert len({one.digest for one in questions}) == 3
    for one in questions:
        assert all(category.definition for category in one.categories)
        assert all(
            category.example for category in one.categories if category.name not in (one.none, "other reason")
        )


def test_a_question_of_ones_own(tmp_path: Path) -> None:
    question = read_question(written(tmp_path, FILE))
    assert question.names == ("calm", "angry")
    other = read_question(written(tmp_path, FILE.replace("It is calm.", "Nothing else.")))
    assert other.digest != question.digest


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('none = "calm"', 'none = "quiet"', "none: 'quiet' is not one of its categories"),
        ('name = "angry"', 'name = "Calm"', "two categories or more, with different names"),
        ('name = "angry"', 'name = ""', "must not be empty"),
        ('sees = "words"', 'sees = "all"', "Invalid enum value 'all' - at `$.sees`"),
        ('title = "tone of the agent"', "", "missing required field `title`"),
        ('title = "tone of the agent"', 'titel = "x"', "unknown field `titel`"),
        ("question/1", "question/2", "Invalid enum value"),
        ("[[categories]]", "[categories", "Expected ']'"),
    ],
)
def test_a_file_that_is_no_question_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = written(tmp_path, FILE.replace(old, new))
    with pytest.raises(BadInput) as caught:
        read_question(path)
    assert str(caught.value).startswith(f"{path}: is not a question (")
    assert reason in str(caught.value)


def test_an_unknown_name_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"--question: unknown question 'awarenes'.*awareness"):
        read_question("awarenes")
    with pytest.raises(BadInput, match="cannot be read"):
        read_question(str(tmp_path / "none.toml"))

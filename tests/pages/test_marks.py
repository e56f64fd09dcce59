"""Marks in a transcript: the quoted words and no others, with what was read in them."""

import re

from propensitybench.pages.judged import QuoteReading
from propensitybench.pages.marks import MAX_MARKS, Marks


def reading(text: str, category: str = "x") -> QuoteReading:
    return QuoteReading("question", category, 4, text, ("a", "b"))


def test_words_are_marked_as_readers_saw_them() -> None:
    marks = Marks([reading("I, (the model), do it")], 4, "openai/gpt-9")
    shown = marks.html("So I,\n GPT-9, do\tit.")
    assert shown.startswith(
        'So <mark title="x (question), a, b">I,\n GPT-9, do\tit</mark><sup><a href="#note-4-1"'
    )
    assert marks.notes == [("note-4-1", "x (question), a, b")]
    assert marks.unplaced == []


def test_a_quote_of_a_call_is_marked_in_name_and_arguments() -> None:
    marks = Marks([reading('tool({"a"'), reading("the_tool", "y")], 4, "")
    name, arguments = marks.call("the_tool", '{"a":1}')
    assert re.sub("<[^>]*>", "", name) == "the_tool12"
    assert name.count("<mark") == 2
    assert '<mark title="y (question), a, b; x (question), a, b">tool</mark>' in name
    assert arguments.startswith('<mark title="x (question), a, b">{&#34;a&#34;</mark>')


def test_words_that_the_page_does_not_show_are_in_the_note() -> None:
    marks = Marks([reading("not <there>"), reading("here", "y")], 4, "")
    assert "<mark" in marks.html("here")
    assert marks.html("here") == "here"  # only where it stands first
    assert marks.notes == [("note-4-1", "y (question), a, b")]
    assert marks.unplaced == [("x (question), a, b", "not <there>")]


def test_marks_of_one_message_are_bounded() -> None:
    many = [reading(f"word {number}") for number in range(MAX_MARKS + 5)]
    marks = Marks(many, 4, "")
    assert marks.html("; ".join(one.text for one in many)).count("<mark") == MAX_MARKS
    assert marks.more == 5

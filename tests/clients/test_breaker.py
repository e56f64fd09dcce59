"""When failures mean that a run cannot go on."""

from propensitybench.clients.breaker import REFUSALS_TO_STOP, Breaker


def test_requests_that_began_to_fail_after_the_last_answer_are_counted() -> None:
    breaker = Breaker()
    assert [breaker.gave_up(failing_since=float(n)) for n in range(3)] == [1, 2, 3]
    breaker.answered(10.0, 2)
    assert breaker.gave_up(failing_since=11.0) == 1


def test_requests_that_failed_while_others_were_answered_say_nothing_of_the_endpoint() -> None:
    breaker = Breaker()
    breaker.answered(10.0, 2)
    assert [breaker.gave_up(failing_since=9.0) for _ in range(50)] == [0] * 50


def test_the_same_refusal_from_task_to_task_is_a_row() -> None:
    breaker = Breaker()
    assert [breaker.refused(1.0, "no items", 2) for _ in range(REFUSALS_TO_STOP)] == [1, 2, 3, 4, 5]
    assert breaker.refused(1.0, "another reason", 2) == 1


def test_an_answer_ends_a_row_unless_its_conversation_was_shorter() -> None:
    breaker = Breaker()
    breaker.refused(1.0, "no items", 4)
    breaker.answered(1.0, 2)  # a first request, while later ones are refused
    assert breaker.refused(1.0, "no items", 6) == 2
    breaker.answered(1.0, 4)
    assert breaker.refused(1.0, "no items", 4) == 1


def test_a_row_waits_for_requests_that_were_sent_before_it() -> None:
    breaker = Breaker()
    slow = breaker.sent()
    assert [breaker.refused(1.0, "no items", 2) for _ in range(5)] == [0] * 5
    breaker.sent()
    breaker.back(slow)
    assert breaker.refused(1.0, "no items", 2) == 6

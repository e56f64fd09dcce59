"""When failures mean that a run cannot go on."""

from propensitybench.clients.breaker import REFUSALS_TO_STOP, Breaker, RefusalStreak


def test_requests_that_began_to_fail_after_the_last_answer_are_counted() -> None:
    breaker = Breaker()
    assert [breaker.gave_up(failing_since=float(n)) for n in range(3)] == [1, 2, 3]
    breaker.answered(10.0)
    assert breaker.gave_up(failing_since=11.0) == 1


def test_requests_that_failed_while_others_were_answered_say_nothing_of_the_endpoint() -> None:
    breaker = Breaker()
    breaker.answered(10.0)
    assert [breaker.gave_up(failing_since=9.0) for _ in range(50)] == [0] * 50


def test_the_same_refusal_from_task_to_task_is_a_streak() -> None:
    streak = RefusalStreak()
    assert [streak.refused("no items", 2) for _ in range(REFUSALS_TO_STOP)] == [1, 2, 3, 4, 5]
    assert streak.refused("another reason", 2) == 1


def test_an_answer_ends_a_streak_unless_its_conversation_was_shorter() -> None:
    streak = RefusalStreak()
    streak.refused("no items", 4)
    streak.answered(2)  # a first request, while later ones are refused
    assert streak.refused("no items", 6) == 2
    streak.answered(4)
    assert streak.refused("no items", 4) == 1


def test_a_streak_waits_for_requests_that_were_sent_before_it() -> None:
    streak = RefusalStreak()
    streak.sent("slow", 2)
    streak.sent("too short to tell", 1)
    assert [streak.refused("no items", 2) for _ in range(5)] == [0] * 5
    streak.sent("later", 2)
    streak.back("slow")
    assert streak.refused("no items", 2) == 6

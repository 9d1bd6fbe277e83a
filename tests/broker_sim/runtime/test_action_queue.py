"""Actions run in order, in one turn, and do not keep each other from running."""

import pytest

from broker_sim.runtime.action_queue import ActionQueue


def test_an_action_that_is_added_by_an_action_runs_in_the_same_turn():
    log, queue = [], ActionQueue()
    queue.add(lambda: queue.add(lambda: log.append("inner")))
    queue.add(lambda: log.append("second"))
    queue.try_complete_actions()
    assert log == ["second", "inner"]


def test_an_action_that_fails_is_reported_and_the_others_run():
    log = []
    queue = ActionQueue(lambda message, error: log.append(type(error)))
    queue.add(lambda: 1 / 0)
    queue.add(lambda: log.append("second"))
    queue.try_complete_actions()
    assert log == [ZeroDivisionError, "second"]


def test_an_action_that_fails_raises_where_nobody_takes_reports():
    queue = ActionQueue()
    queue.add(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        queue.try_complete_actions()

"""Actions run in order; one that fails does not stop the others."""

import pytest

from broker_sim.runtime.action_queue import ActionQueue


def test_action_added_by_an_action_runs_in_the_same_call():
    log, queue = [], ActionQueue()
    queue.add(lambda: queue.add(lambda: log.append("inner")))
    queue.add(lambda: log.append("second"))
    queue.try_complete_actions()
    assert log == ["second", "inner"]


def test_failed_action_is_reported_and_the_others_run():
    log = []
    queue = ActionQueue(lambda message, error: log.append(type(error)))
    queue.add(lambda: 1 / 0)
    queue.add(lambda: log.append("second"))
    queue.try_complete_actions()
    assert log == [ZeroDivisionError, "second"]


def test_queue_waits_until_it_is_run():
    queue = ActionQueue()
    seen = []
    assert not queue.is_waiting
    queue.add(lambda: (queue.add(lambda: None), seen.append(queue.is_waiting)))
    assert queue.is_waiting
    queue.try_complete_actions()
    assert seen == [False]
    assert not queue.is_waiting


def test_queue_waits_again_after_an_action_that_raised():
    queue = ActionQueue()
    queue.add(lambda: 1 / 0)
    queue.add(lambda: None)
    with pytest.raises(ZeroDivisionError):
        queue.try_complete_actions()
    assert queue.is_waiting


def test_failed_action_raises_without_report_error():
    queue = ActionQueue()
    queue.add(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        queue.try_complete_actions()


def test_served_request_is_handled_before_the_operations_it_completes():
    log, queue = [], ActionQueue()

    def handle(request):
        queue.add(lambda: log.append("completed"))
        log.append(request)

    queue.serve(handle, "request")
    assert log == ["request", "completed"]


def test_completions_of_a_failed_request_run():
    log, queue = [], ActionQueue()

    def handle():
        queue.add(lambda: log.append("completed"))
        raise ValueError("the request is bad")

    with pytest.raises(ValueError, match="the request is bad"):
        queue.serve(handle)
    assert log == ["completed"]

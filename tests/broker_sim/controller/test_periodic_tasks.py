"""Claims about periodic tasks that fail; when they run is claimed of the controller."""

import pytest

from broker_sim.controller.periodic_tasks import PeriodicTasks


def test_task_that_fails_is_due_again_after_its_period():
    tasks = PeriodicTasks()
    tasks.register(lambda _: 1 // 0, period_ms=100, now_ms=0)
    with pytest.raises(ZeroDivisionError):
        tasks.run_due(None, now_ms=100)
    assert tasks.next_run_ms() == 200

"""Executors: where expired tasks run."""

import logging
import threading

import pytest
from broker_sim_purgatory import InlineExecutor, SingleThreadExecutor


def _fail():
    raise KeyError("broken")


def test_inline_executor_runs_before_submit_returns():
    ran = []
    InlineExecutor().submit(lambda: ran.append(threading.current_thread()))
    assert ran == [threading.current_thread()]


def test_inline_executor_lets_exceptions_through():
    with pytest.raises(KeyError):
        InlineExecutor().submit(_fail)


def test_single_thread_starts_no_thread_before_its_first_task():
    before = set(threading.enumerate())
    executor = SingleThreadExecutor("idle")
    assert set(threading.enumerate()) <= before
    executor.shutdown()


@pytest.mark.threads
def test_single_thread_runs_in_order_on_one_named_daemon_thread_and_drains_at_shutdown():
    executor = SingleThreadExecutor("worker")
    ran = []
    for number in range(100):
        executor.submit(lambda number=number: ran.append((number, threading.current_thread())))
    executor.shutdown()
    assert [number for number, _ in ran] == list(range(100))
    (thread,) = {thread for _, thread in ran}
    assert thread.name == "executor-worker"
    assert thread.daemon
    assert not thread.is_alive()


@pytest.mark.threads
def test_single_thread_logs_an_exception_and_goes_on(logged):
    executor = SingleThreadExecutor("worker")
    ran = []
    executor.submit(_fail)
    executor.submit(lambda: ran.append(1))
    executor.shutdown()
    assert ran == [1]
    (record,) = logged()
    assert record.levelno == logging.ERROR
    assert "KeyError" in record.exc_text


@pytest.mark.threads
def test_single_thread_may_shut_itself_down():
    executor = SingleThreadExecutor("worker")
    done = threading.Event()

    def shut_down():
        executor.shutdown()
        done.set()

    executor.submit(shut_down)
    assert done.wait(60)


def test_single_thread_refuses_tasks_after_shutdown():
    executor = SingleThreadExecutor("worker")
    executor.shutdown()
    executor.shutdown()
    with pytest.raises(RuntimeError, match="executor-worker is shut down"):
        executor.submit(lambda: None)

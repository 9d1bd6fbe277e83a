"""For how long threads that read answers were kept from running: read from the kernel, kept as intervals."""

import hashlib
import os
import sys
import threading

import pytest
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.cluster_under_test.polling import poll_until
from broker_sim_integration.comparison.intervals import covered_ms
from broker_sim_integration.comparison.reader_waits import LEAST_MS, ReaderControl, ReaderWaits

STEP_MS = 5
WAITED_MS = 100


@pytest.fixture
def start_thread(tmp_path):
    """Return what starts a thread of a name, which waits for the end of the test, and sets its figures."""
    ending, threads = threading.Event(), []

    def start(name):
        thread = threading.Thread(target=ending.wait, name=name)
        thread.start()
        threads.append(thread)
        figures = tmp_path / str(thread.native_id) / "schedstat"
        figures.parent.mkdir()

        def set_waited(waited_ms):
            figures.write_text(f"700 {int(waited_ms * 1_000_000)} 3\n")

        set_waited(0)
        return set_waited

    yield start
    ending.set()
    for thread in threads:
        thread.join()


def looked(waits):
    waits.look()
    return waits.intervals


def test_wait_of_a_reader_lies_before_the_look_that_saw_it(start_thread, tmp_path):
    set_waited = start_thread("raw-127.0.0.1:9092")
    waits = ReaderWaits(str(tmp_path))
    assert looked(waits) == []
    set_waited(STEP_MS)
    ((began_ms, ended_ms),) = looked(waits)
    assert ended_ms - began_ms >= STEP_MS
    assert looked(waits) == [(began_ms, ended_ms)]
    waits.close()


def test_waits_of_other_threads_and_short_ones_are_none(start_thread, tmp_path):
    of_reader, of_other = start_thread("raw-127.0.0.1:9092"), start_thread("control-timer")
    waits = ReaderWaits(str(tmp_path))
    waits.look()
    of_reader(LEAST_MS / 2)
    of_other(STEP_MS)
    assert looked(waits) == []
    waits.close()


def test_readers_that_wait_at_the_same_time_count_once(start_thread, tmp_path):
    readers = [start_thread(f"raw-127.0.0.1:{port}") for port in (9092, 9093)]
    waits = ReaderWaits(str(tmp_path))
    waits.look()
    for set_waited in readers:
        set_waited(STEP_MS)
    assert len(looked(waits)) == 1
    waits.close()


def test_nothing_is_excused_without_the_kernels_figures(start_thread, tmp_path):
    start_thread("raw-127.0.0.1:9092")
    waits = ReaderWaits(str(tmp_path / "none"))
    assert looked(waits) == looked(waits) == []


@pytest.mark.threads
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells")
def test_two_readers_on_one_processor_wait_for_each_other():
    ending, data, (processor, *_) = threading.Event(), bytes(1_000_000), os.sched_getaffinity(0)

    def burn():
        os.sched_setaffinity(0, {processor})
        while not ending.is_set():
            hashlib.sha256(data)  # other threads of Python go on meanwhile

    readers = [threading.Thread(target=burn, name=f"raw-{number}") for number in range(2)]
    began_ms = now_ms()
    with ReaderControl() as control:
        for reader in readers:
            reader.start()
        try:
            poll_until(lambda: covered_ms(control.stalls(now_ms()), began_ms, now_ms()) > WAITED_MS, "waits")
        finally:
            ending.set()
            for reader in readers:
                reader.join()

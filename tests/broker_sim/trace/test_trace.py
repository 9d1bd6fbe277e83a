"""A trace writes its lines in time, into all sinks, as long as they can be written."""

import errno
import os

import pytest

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace import IDS_PER_LIFE, Trace

KEY = TopicPartition("orders", 0)


class FullDisk:
    """A sink that cannot be written."""

    def write(self, lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        self.write([])


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_every_step_is_in_the_file_after_close(make_traced, name):
    traced = make_traced(name=name)
    traced.park(KEY)
    traced.advance(100)
    lines = traced.lines()
    assert [line["event"] for line in lines] == ["tried", "parked", "expired"]
    assert [line["ts_ms"] for line in lines] == [1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_100]
    assert {(line["run_id"], line["side"], line["broker"]) for line in lines} == {("run", "sim", 7)}


def test_flush_writes_all_lines(traced):
    traced.park(KEY)
    traced.trace.flush()
    assert len(traced.path.read_text().splitlines()) == 2


def test_second_close_does_nothing(traced):
    traced.park(KEY)
    traced.trace.close()
    traced.trace.close()
    assert len(traced.path.read_text().splitlines()) == 2


def test_file_that_cannot_be_opened_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        Trace(tmp_path / "missing" / "trace.jsonl", run_id="run")


def test_sink_that_fails_is_dropped_and_the_others_continue(make_traced):
    traced = make_traced(FullDisk())
    for _ in range(2):
        traced.park(KEY)
        traced.trace.flush()
    assert len(traced.lines()) == 4


def test_each_life_of_a_purgatory_has_its_own_ids(traced):
    traced.park(KEY)
    tracer = traced.trace.observer("Produce", 7, traced.clock)
    operation = traced.park(KEY)
    operation.operation_id = 1
    tracer.tried(operation, [KEY])
    ids = [line["operation_id"] for line in traced.lines()]
    assert ids == [1, 1, 2, 2, IDS_PER_LIFE + 1]

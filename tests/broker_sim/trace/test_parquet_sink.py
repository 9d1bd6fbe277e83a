"""A Parquet trace says what the lines say, in files that are whole as soon as they can be seen."""

import errno
import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from broker_sim.errors import MissingExtraError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace import FIELDS, Trace
from broker_sim.trace.parquet_sink import FILE_PERIODS, ParquetSink

KEY = TopicPartition("orders", 0)
WAIT_S = 60


def rows(directory):
    """Return what all files say, in the order in which they were written."""
    return pq.read_table(directory).to_pylist()


def finished(directory):
    return sorted(directory.glob("trace-*.parquet"))


def end_periods(trace, number):
    for _ in range(number):
        trace.flush()


@pytest.fixture
def quiet(monkeypatch):
    """No thread flushes: the test says when a period ends."""
    monkeypatch.setattr("broker_sim.trace.trace.WRITE_PERIOD_S", WAIT_S)


@pytest.fixture
def both(quiet, make_traced, tmp_path):
    """A purgatory that is traced into lines and into Parquet."""
    return make_traced(tmp_path / "trace.parquet")


def test_parquet_has_the_rows_of_the_lines(both, tmp_path):
    both.park(KEY, TopicPartition("o", 1), client_id='a "name" with \\ and ü 😀')
    both.park("group", client_id=None).completable = True
    both.purgatory.check_and_complete("group")
    both.advance(100)
    lines = both.lines()
    assert {line["event"] for line in lines} == {"tried", "parked", "completed", "expired"}
    assert rows(tmp_path / "trace.parquet") == lines
    table = pq.ParquetFile(*finished(tmp_path / "trace.parquet")).read()
    assert tuple(table.column_names) == FIELDS


def test_line_that_is_larger_than_a_block_is_kept(both, tmp_path, monkeypatch):
    monkeypatch.setattr("broker_sim.trace.parquet_sink.BLOCK_BYTES", 100)
    for size in (1, 5_000, 70_000, 3):
        both.park("k" * size)
    lines = both.lines()
    assert rows(tmp_path / "trace.parquet") == lines


def test_file_appears_when_its_oldest_line_is_of_enough_periods(both, tmp_path):
    directory = tmp_path / "trace.parquet"
    end_periods(both.trace, FILE_PERIODS)  # they do not count: there was no line
    both.park(KEY)
    end_periods(both.trace, FILE_PERIODS - 1)
    assert list(directory.iterdir()) == []
    both.park(KEY)
    both.trace.flush()
    assert [path.name for path in directory.iterdir()] == ["trace-00000.parquet"]
    assert len(rows(directory)) == 4
    both.park(KEY)
    end_periods(both.trace, FILE_PERIODS)
    assert len(rows(directory)) == 6
    both.park(KEY)
    lines = both.lines()  # it closes the trace, which writes the last ones
    assert len(lines) == 8
    assert rows(directory) == lines


def test_many_lines_are_written_before_their_time(both, tmp_path, monkeypatch):
    monkeypatch.setattr("broker_sim.trace.parquet_sink.FILE_BYTES", 100)
    both.park(KEY)
    both.trace.flush()
    assert len(rows(tmp_path / "trace.parquet")) == 2


def test_trace_without_a_line_can_be_read(both, tmp_path):
    both.trace.close()
    (path,) = finished(tmp_path / "trace.parquet")
    table = pq.ParquetFile(path).read()
    assert (table.num_rows, tuple(table.column_names)) == (0, FIELDS)


def test_files_of_an_earlier_trace_are_replaced(tmp_path):
    directory = tmp_path / "t.parquet"
    for _ in range(2):
        with Trace(directory, run_id="r"):
            assert list(directory.iterdir()) == []
            (directory / ".trace-00007.unfinished").write_bytes(b"PAR1")
        assert [path.name for path in finished(directory)] == ["trace-00000.parquet"]


def test_directory_with_other_files_is_refused_and_kept(tmp_path):
    directory = tmp_path / "t.parquet"
    directory.mkdir()
    mine = directory / "part-00000.parquet"
    mine.write_bytes(b"mine")
    (directory / "trace-00000.parquet").write_bytes(b"earlier")
    with pytest.raises(OSError, match=r"part-00000\.parquet in it does not belong to a trace") as refused:
        ParquetSink(directory)
    assert refused.value.filename == str(directory)
    assert len(list(directory.iterdir())) == 2


@pytest.mark.parametrize("name", ["file.parquet", "missing/t.parquet"])
def test_directory_that_cannot_be_made_raises(tmp_path, name):
    (tmp_path / "file.parquet").write_bytes(b"")
    with pytest.raises(OSError, match=r"\.parquet"):
        ParquetSink(tmp_path / name)


@pytest.mark.parametrize("at", ["period", "close"])
def test_full_disk_ends_the_trace_with_a_line_in_the_log(both, tmp_path, monkeypatch, caplog, at):
    def full(table, path, **_):
        assert path.name.startswith("."), "readers would see it"
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", full)
    both.park(KEY)
    if at == "period":
        end_periods(both.trace, FILE_PERIODS)
        both.park(KEY)
    assert len(both.lines()) == (4 if at == "period" else 2)
    assert list((tmp_path / "trace.parquet").iterdir()) == []
    assert "trace_sink_failed" in caplog.text


def test_trace_that_has_failed_does_not_end_with_an_empty_file(both, tmp_path, monkeypatch, caplog):
    write_table, failed = pq.write_table, []

    def full(*arguments, **named):
        if not failed:
            failed.append(True)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_table(*arguments, **named)

    monkeypatch.setattr(pq, "write_table", full)
    both.park(KEY)
    end_periods(both.trace, FILE_PERIODS)
    both.trace.close()
    assert "trace_sink_failed" in caplog.text
    assert list((tmp_path / "trace.parquet").iterdir()) == []


def test_value_that_parquet_does_not_take_ends_that_trace_only(both, tmp_path, caplog, monkeypatch):
    def refused(*_, **__):
        raise ValueError("out of range")

    monkeypatch.setattr("pyarrow.json.read_json", refused)
    both.park(KEY)
    end_periods(both.trace, FILE_PERIODS)
    both.park(KEY)
    assert len(both.lines()) == 4
    assert "out of range" in caplog.text


def test_without_pyarrow_there_is_one_line_and_no_directory(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError) as missing:
        Trace(tmp_path / "t.parquet", run_id="r")
    assert str(missing.value) == "pyarrow is not installed: pip install 'broker-sim[parquet]'"
    assert not (tmp_path / "t.parquet").exists()


KILLED = """
import os, sys
from pathlib import Path
from broker_sim import Cluster, Trace
from broker_sim.trace import parquet_sink

parquet_sink.FILE_PERIODS = 5
lines, files = Path("trace.jsonl"), Path("trace.parquet")
trace = Trace(lines, files, run_id="r")
with Cluster(3, topics=["orders:1:3"], trace=trace) as kafka:
    def produce_until(condition):
        while not condition():
            kafka.produce("orders", "x")
    produce_until(lambda: len(list(files.glob("trace-*.parquet"))) >= 2)
    print(len(list(files.glob("trace-*.parquet"))), flush=True)
    parquet_sink.FILE_PERIODS = 10**9
    finished = len(list(files.glob("trace-*.parquet")))
    seen = lines.stat().st_size
    produce_until(lambda: lines.stat().st_size > seen)
    (files / f".trace-{finished:05d}.unfinished").write_bytes(b"PAR1")
    os.kill(os.getpid(), 9)
"""


@pytest.mark.threads
def test_killed_process_loses_only_the_last_file(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        cwd=tmp_path, timeout=WAIT_S, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, done.stderr
    files = finished(tmp_path / "trace.parquet")
    assert len(files) >= int(done.stdout) >= 2
    kept = rows(tmp_path / "trace.parquet")
    *whole, _ = (tmp_path / "trace.jsonl").read_text().split("\n")
    lines = [json.loads(line) for line in whole]
    assert 0 < len(kept) < len(lines), "what came after the last file is lost"
    assert kept == lines[: len(kept)], "and nothing else"

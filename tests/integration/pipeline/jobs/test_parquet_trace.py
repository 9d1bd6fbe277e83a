"""A Parquet trace becomes the same tables as its lines do."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_sim import Trace, VirtualCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.trace.parquet_sink import ParquetSink

pytestmark = pytest.mark.spark


@pytest.fixture
def ingest(spark, tmp_path):
    """Return a function that ingests files into a directory; returns the counts."""
    from broker_sim_integration.pipeline.jobs import ingest

    return lambda *inputs, into="out": ingest.run(spark, [str(path) for path in inputs], str(tmp_path / into))


@pytest.fixture
def table(spark, tmp_path):
    def read(name, into="out"):
        frame = spark.read.parquet(str(tmp_path / into / name))
        return sorted(map(str, frame.select(*sorted(frame.columns)).collect()))

    return read


@pytest.fixture
def write_parquet(tmp_path):
    """Return a function that writes events as the simulator does."""

    def write(name, *groups):
        sink = ParquetSink(tmp_path / name)
        for rows in groups:
            sink.write([json.dumps(row) for row in rows])
        sink.close()
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The trace of a cluster with a follower that hangs, as lines and as Parquet."""
    directory = tmp_path_factory.mktemp("both")
    paths = directory / "trace.jsonl", directory / "trace.parquet"
    with Trace(*paths, run_id="seed-1") as trace:
        cluster = VirtualCluster(seed=1, trace=trace)
        cluster.create_topic("t", assignments={0: [1, 2, 3]})
        client = cluster.client()
        for paused in (False, True):
            if paused:
                cluster.pause(3)
            pending = client.send(1, produce_request(("t", 0), timeout_ms=700), PRODUCE_VERSION)
            cluster.run_until(lambda answer=pending: answer.done)
    return paths


@pytest.fixture(scope="module")
def from_lines(spark, both):
    """The tables of the lines, and what was counted; made once."""
    from broker_sim_integration.pipeline.jobs import ingest

    out = both[0].parent / "lines"
    return out, ingest.run(spark, [str(both[0])], str(out))


def test_both_formats_of_a_trace_become_the_same_events(ingest, table, both, from_lines):
    lines, counts = from_lines
    assert counts.events > 10
    assert ingest(both[1], into="parquet") == counts
    assert table("events", "parquet") == table("events", lines)


def test_events_that_lines_brought_are_known(ingest, table, both, from_lines):
    lines, first = from_lines
    again = ingest(both[1], into=lines)
    assert (again.events, again.duplicates) == (0, first.events)
    assert len(table("events", lines)) == first.events


def test_both_formats_are_read_at_once(ingest, event, write_lines, write_parquet, tmp_path):
    lines = write_lines(tmp_path / "a.jsonl", [event(operation_id=1), event(operation_id=2)])
    parquet = write_parquet("b.parquet", [event(operation_id=2), event(operation_id=3)])
    counts = ingest(lines, f"{parquet}/")
    assert (counts.lines, counts.events, counts.duplicates) == (4, 3, 1)


def test_events_against_the_rules_are_quarantined_for_the_same_reason(
    ingest, table, event, life, write_lines, write_parquet, tmp_path
):
    expired = life(3, 1_000, 2_000, "expired")[-1]
    rows = [
        event(side="moon"),
        event(event="lost"),
        event(ts_ms=0),
        event(purgatory=None),
        expired | {"waited_ms": -1},
        expired | {"waited_ms": None},
        expired | {"lateness_ms": None},
        event(),
    ]
    counts = ingest(write_lines(tmp_path / "a.jsonl", rows), into="lines")
    assert (counts.quarantined, counts.events) == (7, 1)
    parquet = write_parquet("b.parquet", rows)
    assert ingest(parquet, into="parquet") == counts

    def reasons(into):
        return [text.partition(", source=")[0].partition("reason=")[2] for text in table("quarantine", into)]

    assert sorted(reasons("parquet")) == sorted(reasons("lines"))
    assert all("b.parquet/trace-00000.parquet" in text for text in table("quarantine", "parquet"))
    assert any('\\"side\\":\\"moon\\"' in json.dumps(t) for t in table("quarantine", "parquet"))


def test_unfinished_file_is_left_out(ingest, event, write_parquet):
    path = write_parquet("t.parquet", [event()])
    (path / ".trace-00001.unfinished").write_bytes(b"PAR1")
    assert ingest(path).events == 1


def test_input_that_is_not_a_trace_is_one_line(ingest, event, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError

    row = event() | {"ts_ms": "today"}
    del row["watched"]
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "x.parquet")
    with pytest.raises(PipelineError, match=r"x\.parquet: not a trace: ts_ms is string, .*watched is m"):
        ingest(tmp_path / "x.parquet")
    with pytest.raises(PipelineError, match=r"no such input: .*nowhere\.parquet"):
        ingest(tmp_path / "nowhere.parquet")
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(PipelineError, match=r"empty\.parquet: it contains no complete file yet"):
        ingest(tmp_path / "empty.parquet")

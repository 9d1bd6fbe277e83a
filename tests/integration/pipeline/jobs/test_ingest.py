"""Files become tables: each event once, and no line is lost silently."""

import datetime as dt
import gzip
import json

import pytest

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000


@pytest.fixture
def run(spark, tmp_path):
    from broker_sim_integration.pipeline.jobs import ingest

    return lambda *inputs: ingest.run(spark, inputs, str(tmp_path / "out"))


@pytest.fixture
def table(spark, tmp_path):
    return lambda name: spark.read.parquet(str(tmp_path / "out" / name))


@pytest.fixture(scope="module")
def mixed(spark, event, observation, tmp_path_factory, write_lines):
    """Lines of every kind, ingested once: the file, its tables, and what was counted."""
    from broker_sim_integration.pipeline.jobs import ingest

    directory = tmp_path_factory.mktemp("mixed")
    rows = [event(operation_id=1), event(operation_id=1), event(operation_id=2)]
    path = write_lines(directory / "trace.jsonl", [*rows, observation(), "broken", "broken"])
    return path, str(directory), ingest.run(spark, [path], str(directory))


def _rows(spark, directory):
    return {
        name: spark.read.parquet(f"{directory}/{name}").count() for name in ("events", "observations", "quarantine")
    }


def test_every_line_is_accounted_for(spark, mixed):
    _, tables, counts = mixed
    assert (counts.lines, counts.events, counts.observations) == (6, 2, 1)
    assert (counts.quarantined, counts.duplicates) == (2, 1)
    assert _rows(spark, tables) == {"events": 2, "observations": 1, "quarantine": 1}
    (bad,) = spark.read.parquet(f"{tables}/quarantine").collect()
    assert (bad.line, bad.reason, bad.times) == ("broken", "not one JSON object", 2)
    assert bad.source.endswith("trace.jsonl")


def test_a_second_run_adds_nothing(spark, mixed):
    from broker_sim_integration.pipeline.jobs import ingest

    path, tables, _ = mixed
    before = _rows(spark, tables)
    again = ingest.run(spark, [path], tables)
    assert (again.events, again.observations, again.quarantined, again.duplicates) == (0, 0, 2, 4)
    assert _rows(spark, tables) == before


def test_late_events_are_stored_under_their_date_and_known_ones_once(run, table, event, tmp_path, write_lines):
    today, yesterday = event()["ts_ms"], event()["ts_ms"] - DAY_MS
    run(write_lines(tmp_path / "a.jsonl", [event(ts_ms=today)]))
    counts = run(write_lines(tmp_path / "b.jsonl", [event(ts_ms=today), event(ts_ms=yesterday)]))
    assert (counts.events, counts.duplicates) == (1, 1)
    dates = [row.date for row in table("events").orderBy("date").select("date").collect()]
    assert dates == [dt.date(2023, 11, 13), dt.date(2023, 11, 14)]


def test_events_that_differ_in_one_field_only_are_both_kept(run, event, tmp_path, write_lines):
    end = event(event="completed", waited_ms=5, completed_by="key:t-0")
    rows = [end, end | {"completed_by": None}, end | {"watched": 2}]
    assert run(write_lines(tmp_path / "trace.jsonl", rows)).events == 3


def test_compressed_traces_are_read(run, event, tmp_path):
    with gzip.open(tmp_path / "trace.jsonl.gz", "wt") as out:
        out.write(json.dumps(event()) + "\n")
    assert run(str(tmp_path / "*.gz")).events == 1


@pytest.mark.soak(part="spark")
def test_only_lines_that_are_no_events_are_parsed_again(
    run, spark, event, observation, tmp_path, write_lines, monkeypatch
):
    from broker_sim_integration.pipeline.jobs import ingest

    parsed, parse = [], ingest.parse

    def spy(lines):
        parsed.append(lines)
        return parse(lines)

    monkeypatch.setattr(ingest, "parse", spy)
    events = [event(operation_id=number) for number in range(300)]
    bad = ['{"ts_ms": 1}', "broken", *[json.dumps(event(side=f"moon {n}")) for n in range(20)]]
    counts = run(write_lines(tmp_path / "a.jsonl", [*events, *bad, observation(), *bad]))
    assert (counts.lines, counts.events, counts.duplicates) == (345, 300, 0)
    assert (counts.quarantined, counts.observations) == (44, 1)
    unfit, observed = (frame.count() for frame in parsed)
    assert observed == 1
    assert 45 <= unfit < 51, "a line in a thousand has the same bit as one that is left"
    kept = spark.read.parquet(str(tmp_path / "out/quarantine")).collect()
    assert {(row.line, row.times) for row in kept} == {(line, 2) for line in bad}


@pytest.mark.soak(part="spark")
def test_events_in_an_unusual_form_are_the_same_events(run, table, event, tmp_path, write_lines, monkeypatch):
    from broker_sim_integration.pipeline.jobs import ingest

    usual = [event(operation_id=number) for number in range(3)]
    unusual = [json.dumps(row | {"colour": "green"}) for row in usual]
    more = [json.dumps(event(client_id="h\u00fcte", operation_id=9)), *unusual[:1]]
    mixed = write_lines(tmp_path / "a.jsonl", [*usual, *unusual, *more, "broken"])
    for most in (ingest.MOST_SLOTS, 0):
        monkeypatch.setattr(ingest, "MOST_SLOTS", most)
        counts = run(mixed)
        new = 4 if most else 0
        assert (counts.lines, counts.quarantined) == (9, 1)
        assert (counts.events, counts.duplicates) == (new, 8 - new)
    assert table("events").count() == 4
    assert table("events").where("client_id = 'h\u00fcte'").count() == 1


def test_much_that_does_not_fit_is_kept_too(run, table, event, tmp_path, write_lines, monkeypatch):
    from broker_sim_integration.pipeline.jobs import ingest

    monkeypatch.setattr(ingest, "MOST_SLOTS", 3)
    bad = [f"broken {number}" for number in range(9)]
    assert run(write_lines(tmp_path / "a.jsonl", [event(), *bad])).quarantined == 9
    assert {row.line for row in table("quarantine").collect()} == set(bad)


@pytest.mark.soak(part="spark")
def test_a_large_compressed_trace_is_warned_of(run, event, tmp_path, write_lines, monkeypatch, capsys):
    from broker_sim_integration.pipeline.jobs import ingest

    traces = tmp_path / "in"
    traces.mkdir()
    with gzip.open(traces / "a trace.jsonl.gz", "wt") as out:
        out.write(json.dumps(event()) + "\n")
    write_lines(traces / "plain.jsonl", [event()])
    run(str(traces))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(ingest, "are_small", lambda _: False)
    monkeypatch.setattr(ingest, "LARGE_GZIP_BYTES", 10)
    assert run(str(traces)).lines == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: file:")
    assert "trace.jsonl.gz has 0 MB, and one task alone unpacks it" in line


def test_a_missing_input_is_one_line(run, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError

    with pytest.raises(PipelineError, match=r"no such input: .*nowhere"):
        run(str(tmp_path / "nowhere"))


@pytest.mark.soak(part="spark")
def test_tables_are_partitioned_by_date_side_and_purgatory(run, event, tmp_path, write_lines):
    run(write_lines(tmp_path / "trace.jsonl", [event()]))
    assert list((tmp_path / "out/events").glob("date=2023-11-14/side=sim/purgatory=Produce/*.parquet"))


@pytest.mark.soak(part="spark")
def test_inputs_without_any_event_are_counted_too(run, observation, tmp_path, write_lines):
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert str(run(str(empty))).startswith("0 lines: 0 new events")
    blank = run(write_lines(tmp_path / "blank.jsonl", ["", " ", observation()]))
    assert (blank.lines, blank.quarantined, blank.observations) == (3, 2, 1)


@pytest.mark.soak(part="spark")
def test_known_events_of_other_runs_and_dates_are_not_read(run, table, event, tmp_path, write_lines):
    now_ms = event()["ts_ms"]
    known = [event(run_id="old", operation_id=number) for number in range(3_000)]
    run(write_lines(tmp_path / "a.jsonl", [*known, event(ts_ms=now_ms - DAY_MS)]))
    for path in (tmp_path / "out/events").rglob("*.parquet"):
        # The footer stays: it says that the file has no row of the run.
        whole = path.read_bytes()
        footer_bytes = 8 + int.from_bytes(whole[-8:-4], "little")
        path.write_bytes(b"x" * (len(whole) - footer_bytes) + whole[-footer_bytes:])
        path.with_name(f".{path.name}.crc").unlink()
    assert run(write_lines(tmp_path / "b.jsonl", [event(), event()])).events == 1
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|Could not read"):
        run(write_lines(tmp_path / "c.jsonl", [known[0]]))


@pytest.mark.soak(part="spark")
def test_a_compressed_trace_is_parsed_by_many_tasks(spark, event, tmp_path, explained):
    from broker_sim_integration.pipeline.jobs.ingest import events, read_quickly

    with gzip.open(tmp_path / "trace.jsonl.gz", "wt") as out:
        out.write(json.dumps(event()) + "\n")
    plan = explained(events(read_quickly(spark, [str(tmp_path)])))
    # Plans are read from the bottom: the lines are dealt out before they are read.
    assert plan.index("MapInArrow") < plan.index("REBALANCE_PARTITIONS_BY_COL")
    assert "REBALANCE" not in explained(events(read_quickly(spark, [__file__])))


@pytest.mark.soak(part="spark")
def test_the_first_events_are_shuffled_once(spark, run, event, tmp_path, write_lines, task_sizes, request):
    from broker_sim_integration.pipeline.jobs.ingest import DEALS

    numbers = range(DEALS // 2, 2 * DEALS)
    first = [event(operation_id=number, purgatory=name) for number in numbers for name in "ab"]
    spark.sparkContext.setJobGroup(request.node.name, "measured")
    assert run(write_lines(tmp_path / "a.jsonl", [*first, *first])).events == len(first)
    stages = task_sizes["stages_run"](spark, request.node.name)
    # Lines are read and dealt out; then they are looked through and written.
    assert len(stages) == 2, stages


@pytest.mark.soak(part="spark")
def test_dates_are_those_of_utc_in_any_time_zone(run, table, spark, event, tmp_path, write_lines):
    path = write_lines(tmp_path / "a.jsonl", [event()])
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for each in (zone, "Pacific/Auckland", "Pacific/Honolulu"):
            spark.conf.set("spark.sql.session.timeZone", each)
            run(path)
            (row,) = table("events").select("date").collect()
            assert row.date == dt.date(2023, 11, 14)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_parquet_among_the_lines_is_refused(run, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "trace-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(PipelineError, match=r"is Parquet: give the directory of that trace"):
        run(str(tmp_path / "in"))

"""What the quick reader takes of a trace's lines is what `parse` reads; the usual lines it takes all."""

import json
import random
import subprocess
import sys

import pytest

from broker_sim import Trace, VirtualCluster
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request

pytestmark = pytest.mark.spark

LINES = 1_500
ODD_CHARACTERS = '{}[]":,\\ \t\n\r0159.eE+-azN/*#\x00\x7fé'
ODD_VALUES = [
    "null", "true", "-0", "00", "01", "1.0", "1e3", "+1", "- 1", "0x10", "NaN", "Infinity", "-Infinity",
    "9223372036854775807", "9223372036854775808", "2147483648", "-1", "0", "1" * 1_001, '""', '"1"',
    '"scenario"', '"\\ud800"', "[]", "[null]", '["a",null]', '["a","b"]', "[1]", "[[]]", "{}", '"x" "y"',
    "1,2", '"a',
]  # fmt: skip


@pytest.fixture
def take(require_spark):
    """Return a function from lines to the events that were taken, None for a line that was left."""
    import pyarrow as pa
    from broker_sim_integration.pipeline.jobs import quick_lines

    def read(lines):
        binary = [line if isinstance(line, bytes) else line.encode() for line in lines]
        events, taken = quick_lines.take(pa.array(binary, pa.binary()).view(pa.string()))
        rows = iter(events.to_pylist())
        found = [next(rows) if each else None for each in taken.to_pylist()]
        assert next(rows, None) is None
        assert len(found) == len(lines)
        return found

    return read


@pytest.fixture
def parsed(spark):
    """Return a function from lines to the events of the strict parser, None for what is none."""
    import pyspark.sql.functions as sf
    from broker_sim_integration.pipeline.jobs.schema import parse

    def read(lines):
        binary = [line if isinstance(line, bytes) else line.encode() for line in lines]
        rows = spark.createDataFrame(list(enumerate(binary)), "source int, line binary")
        text = rows.select(sf.col("source").cast("string"), sf.col("line").cast("string"))
        found = {int(row.source): row.event for row in parse(text).select("source", "event").collect()}
        return [found[number] and found[number].asDict() for number in range(len(lines))]

    return read


def _tricky_lines(good):
    """Return lines of which a lenient reader would take some; `good` is an event."""
    text = json.dumps(good)
    inside = text[1:-1]
    return [
        "", " ", "null", "{}", "[]", "1", '"text"', "broken", text[:-1], text[1:],
        f"{text}{text}", f"{text} {text}", f"{text},{text}", f"[{text}]", f"[{text}", f"{text}]",
        f"{text} text", f"{text}}}", f"{text} ", f" {text}", f"\ufeff{text}", f"{text}\n{text}",
        f"{{{inside},}}", f"{{,{inside}}}", f"{{{inside}}} /* x */", f"/* x */{text}", f"{text}//}}",
        f"{{{inside},{inside}}}", f'{{{inside},"keys":null}}', f'{{{inside},"api":"other"}}',
        f'{{{inside},"colour":"green"}}', f'{{{inside},"nested":{{"a":1}}}}', f'{{{inside},"":1}}',
        f'{{{inside},"scenario":"s"}}', f'{{{inside},"scen\\u0061rio":1}}', text.upper(),
        text.replace('"', "'"), text.replace('"api"', "api"), text.replace('"api"', '"API"'),
        text.replace(":", "\t:\n "), text.replace(",", "\r\n,"), text.replace('"c"', '"\\u0063"'),
        text.replace('"c"', '"h\xfcte"'), text.replace('"c"', '"}{"'), text.replace('"c"', '"a\nb"'),
        text.replace('"c"', '"a\tb"'), text.replace('"c"', '"a\x00b"'), text.replace('"c"', '"a\x7fb"'),
        text.encode().replace(b'"c"', b'"\xff"'), text.encode().replace(b'"c"', b'"\xed\xa0\x80"'),
        *[json.dumps({k: v for k, v in good.items() if k != name}) for name in good],
        *[json.dumps(good | {"OLD": 0}).replace(f'"{name}": {json.dumps(good[name])}', f'"{name}": {odd}')
          .replace(', "OLD": 0', "") for name in good for odd in ODD_VALUES],
        *[json.dumps(good | {"event": ending} | fields)
          for ending in ("completed", "expired", "cancelled", "slept")
          for fields in ({}, {"waited_ms": 0}, {"waited_ms": -1}, {"waited_ms": 1, "lateness_ms": -1})],
        text,
    ]  # fmt: skip


def _must_be_sound(lines, taken, parsed, seed=""):
    for line, mine, strict in zip(lines, taken, parsed, strict=True):
        assert mine is None or mine == strict, (seed, line)


def test_of_tricky_lines_only_those_are_taken_that_are_the_same_events(event, take, parsed):
    lines = _tricky_lines(event())
    strict = parsed(lines)
    together, alone = take(lines), [take([line])[0] for line in lines]
    _must_be_sound(lines, together, strict)
    _must_be_sound(lines, alone, strict)
    assert 50 < sum(each is not None for each in alone) < len(lines) / 2
    assert alone[-1] == event()


def test_neighbours_do_not_become_one_event(event, take):
    text = json.dumps(event())
    assert take([text + text, text]) == [None, event()]
    for cut in range(2, len(text) - 1):
        lines = [text[:cut], text[cut:], text + text, text]
        assert take(lines)[:3] == [None, None, None], cut
        braced = [text[:cut] + "}", "{" + text[cut:], text]
        assert take(braced)[:2] == [None, None], cut


def _mutated(rng, text):
    """Return a line with some odd characters, or a part of it gone or repeated."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in "ab")
        text = rng.choice([
            text[:at] + rng.choice(ODD_CHARACTERS) + text[at:],
            text[:at] + rng.choice(ODD_CHARACTERS) + text[at + 1:],
            text[:at] + rng.choice(ODD_VALUES) + text[at:],
            text[:at] + text[at + 1:],
            text[:at] + text[to:],
            text[:to] + text[at:],
            text + text[at:to],
        ])  # fmt: skip
    return text


@pytest.mark.soak(part="spark")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_lines_are_taken_only_if_they_are_the_same_events(event, take, parsed, seed):
    rng = random.Random(seed)
    lines = []
    for number in range(LINES):
        end = {"event": rng.choice(["expired", "completed"]), "waited_ms": number, "lateness_ms": 1}
        row = event(operation_id=number, **(end if rng.random() < 0.5 else {}))
        lines.append(_mutated(rng, json.dumps(row, separators=rng.choice([(",", ":"), (", ", ": ")]))))
    taken = take(lines[: LINES // 2]) + [take([line])[0] for line in lines[LINES // 2 :]]
    _must_be_sound(lines, taken, parsed(lines), f"seed {seed}")
    assert sum(each is not None for each in taken) > LINES / 20, f"seed {seed}"


def test_one_bad_line_leaves_its_neighbours(event, take):
    lines = [json.dumps(event(operation_id=number)) for number in range(1_000)]
    bad = {0: "broken", 17: '{"ts_ms":"x"}', 500: "", 999: "{}", 998: "\xff"}
    lines = [bad.get(number, line) for number, line in enumerate(lines)]
    found = take(lines)
    assert {number for number, each in enumerate(found) if each is None} == bad.keys()
    assert all(each["operation_id"] == n for n, each in enumerate(found) if each)


def test_lines_that_are_all_refused_are_not_tried_one_by_one(event, take, monkeypatch):
    from broker_sim_integration.pipeline.jobs import quick_lines

    tried, read = [], quick_lines._read

    def spy(lines):
        tried.append(len(lines))
        return read(lines)

    monkeypatch.setattr(quick_lines, "_read", spy)
    lines = [json.dumps(event() | {"colour": "green"})] * 2_000
    assert take(lines) == [None] * len(lines)
    assert len(tried) < 3 * quick_lines.MOST_REFUSALS
    assert sum(tried) < 10 * len(lines)


def test_whatever_the_simulator_writes_is_taken(take, tmp_path):
    path = tmp_path / "trace.jsonl"
    with Trace(path, run_id="seed-1") as trace:
        cluster = VirtualCluster(seed=1, trace=trace)
        cluster.create_topic("t", assignments={0: [1, 2, 3]})
        client = cluster.client()
        for paused in (False, True):
            if paused:
                cluster.pause(3)
            pending = client.send(1, produce_request(("t", 0), timeout_ms=700), PRODUCE_VERSION)
            cluster.run_until(lambda answer=pending: answer.done)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) > 10
    assert take(lines) == [json.loads(line) for line in lines]


def test_long_lines_are_left_on_executors(spark, event):
    from broker_sim_integration.pipeline.jobs.quick_lines import LONGEST_BYTES, quick_events

    longer = event(client_id="c" * LONGEST_BYTES)
    lines = [(json.dumps(event()), 3), (json.dumps(longer), 5), ("broken", 7), (None, 9)]
    rows = quick_events(spark.createDataFrame(lines, "line string, slot int")).collect()
    assert [row.slot for row in sorted(rows, key=lambda row: row.slot or 0)] == [None, 5, 7, 9]
    (found,) = [row.asDict() for row in rows if row.slot is None]
    assert found == event() | {"slot": None}


@pytest.mark.soak(part="spark")
def test_executors_need_nothing_of_this_project(require_spark, event, tmp_path):
    from broker_sim_integration.pipeline.jobs import quick_lines
    from pyspark import cloudpickle

    sent = tmp_path / "function"
    sent.write_bytes(cloudpickle.dumps(quick_lines._quick_batches))
    program = f"""
import pickle, sys
sys.modules["broker_sim_integration"] = None
import pyarrow as pa
read = pickle.loads(open({str(sent)!r}, "rb").read())
lines = pa.RecordBatch.from_pydict({{"line": [{json.dumps(event())!r}, ""], "slot": [1, 2]}})
print([batch.column("slot").to_pylist() for batch in read([lines])])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[[None], [2]]\n", "")

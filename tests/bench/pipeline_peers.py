"""The same answers as the pipeline's by plain pandas and by DuckDB, on one machine, in memory.

Each takes a trace file and returns `Answers`: what has to be equal, and how long each step took.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

STEPS = ("read", "lifecycle", "latency", "occupancy")
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MINUTE_MS = 60_000


@dataclass
class Answers:
    """Totals per group, and seconds per step."""

    operations: int = 0
    latency: dict[tuple[str, str, int | None], tuple[float | None, ...]] = field(default_factory=dict)
    """For each purgatory, outcome and minute (None: all of them) the count, the percentiles of waiting,
    the percentiles of lateness."""
    occupancy: dict[tuple[int, str, str | None], tuple[int, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """All steps together."""
        return sum(self.seconds.values())


class Stopwatch:
    """Notes how long each step took, and how much processor time by `used_s`."""

    def __init__(self, answers: Answers, used_s: Callable[[], float] = time.process_time) -> None:
        self._answers = answers
        self._used_s = used_s
        self._last = time.perf_counter(), used_s()

    def lap(self, step: str) -> None:
        """Note the time since the last lap under this step."""
        now, before = (time.perf_counter(), self._used_s()), self._last
        self._answers.seconds[step] = now[0] - before[0]
        self._answers.cpu_s[step] = now[1] - before[1]
        self._last = now


def with_pandas(path: str) -> Answers:
    """Compute everything with pandas; arrow reads the JSON, which pandas itself does slowly."""
    import pandas as pd
    from pyarrow import json as arrow_json

    answers = Answers()
    watch = Stopwatch(answers)
    block = arrow_json.ReadOptions(block_size=1 << 24)
    events = arrow_json.read_json(path, read_options=block).to_pandas()
    events["keys"] = events["keys"].map(tuple)
    events = events.drop_duplicates()
    watch.lap("read")
    names = ["run_id", "side", "broker", "purgatory", "operation_id"]
    tried = events[events.event == "tried"].set_index(names)
    parked = events[events.event == "parked"].set_index(names)
    ends = events[events.event.isin(["completed", "expired", "cancelled"])].set_index(names)
    lives = tried[["keys", "api", "client_id", "delay_ms"]].copy()
    lives["parked_at_ms"] = parked["ts_ms"]
    lives[["ended_at_ms", "outcome", "waited_ms", "lateness_ms"]] = ends[["ts_ms", "event", "waited_ms", "lateness_ms"]]
    lives = lives.reset_index()
    answers.operations = len(lives)
    watch.lap("lifecycle")
    lives["minute"] = lives.ended_at_ms // MINUTE_MS
    shares = list(PERCENTILES.values())
    for names in (["purgatory", "outcome", "minute"], ["purgatory", "outcome"]):
        grouped = lives.groupby(names)
        counts = grouped.size()
        found = grouped[["waited_ms", "lateness_ms"]].quantile(shares).unstack()  # noqa: PD010 - a table of all quantiles
        for group, row in found.iterrows():
            values = [None if pd.isna(value) else float(value) for value in row]
            key = group if len(names) == 3 else (*group, None)
            answers.latency[key] = (int(counts[group]), *values)
    watch.lap("latency")
    exploded = lives[["broker", "purgatory", "keys", "parked_at_ms", "ended_at_ms"]]
    by_key = exploded.explode("keys")
    whole = exploded.assign(keys="")
    both = pd.concat([by_key, whole])
    columns = {"parked_at_ms": "at", "ended_at_ms": "at"}
    steps = pd.concat(
        [
            both.drop(columns="ended_at_ms").rename(columns=columns).assign(change=1),
            both.drop(columns="parked_at_ms").rename(columns=columns).assign(change=-1),
        ]
    )
    series = ["broker", "purgatory", "keys"]
    changes = steps.groupby([*series, "at"], as_index=False).change.sum()
    grouped = changes.groupby(series)
    changes["level"] = grouped.change.cumsum()
    changes["area"] = changes.level * (grouped["at"].shift(-1) - changes["at"])
    totals = changes.groupby(series).agg(peak=("level", "max"), area=("area", "sum"))
    for (broker, purgatory, key), row in totals.iterrows():
        answers.occupancy[broker, purgatory, key or None] = (int(row.peak), int(row.area))
    watch.lap("occupancy")
    return answers


def with_duckdb(path: str) -> Answers:
    """Compute everything with DuckDB on all cores."""
    import duckdb

    answers = Answers()
    watch = Stopwatch(answers)
    database = duckdb.connect()
    database.execute("create table events as select distinct * from read_json(?, format='newline_delimited')", [path])
    watch.lap("read")
    database.execute("""
        create table lives as
        select run_id, side, broker, purgatory, operation_id, any_value(api) as api,
               any_value(client_id) as client_id, any_value(keys) as keys,
               min(ts_ms) filter (event = 'parked') as parked_at_ms,
               min(ts_ms) filter (event in ('completed', 'expired', 'cancelled')) as ended_at_ms,
               any_value(event) filter (event in ('completed', 'expired', 'cancelled')) as outcome,
               any_value(waited_ms) as waited_ms, any_value(lateness_ms) as lateness_ms
        from events group by all
    """)
    answers.operations = database.execute("select count(*) from lives").fetchone()[0]
    watch.lap("lifecycle")
    shares = list(PERCENTILES.values())
    for purgatory, outcome, minute, count, waited, lateness in database.execute(f"""
        select purgatory, outcome, ended_at_ms // {MINUTE_MS} as minute, count(*),
               quantile_cont(waited_ms, {shares}), quantile_cont(lateness_ms, {shares})
        from lives group by grouping sets ((purgatory, outcome, minute), (purgatory, outcome))
    """).fetchall():
        values = (*waited, *(lateness or [None] * len(shares)))
        answers.latency[purgatory, outcome, minute] = (count, *values)
    watch.lap("latency")
    rows = database.execute("""
        with steps as (
            select broker, purgatory, unnest(list_append(keys, null)) as key,
                   parked_at_ms as at_ms, 1 as change from lives
            union all
            select broker, purgatory, unnest(list_append(keys, null)) as key,
                   ended_at_ms as at_ms, -1 as change from lives
        ), changes as (
            select broker, purgatory, key, at_ms, sum(change) as change from steps group by all
        ), levels as (
            select broker, purgatory, key, at_ms, sum(change) over series as level,
                   lead(at_ms) over series - at_ms as lasted
            from changes window series as (partition by broker, purgatory, key order by at_ms)
        )
        select broker, purgatory, key, max(level), coalesce(sum(level * lasted), 0) from levels group by all
    """).fetchall()
    answers.occupancy = {
        (broker, purgatory, key): (int(peak), int(area)) for broker, purgatory, key, peak, area in rows
    }
    watch.lap("occupancy")
    return answers

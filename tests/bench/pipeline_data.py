"""A large trace with the shape of a real one, made without running a broker for an hour."""

import random
from itertools import islice
from pathlib import Path

from broker_sim.trace.parquet_sink import ParquetSink

START_MS = 1_700_000_000_000
EVENTS_PER_OPERATION = 3
KEYS = [f"orders-{number}" for number in range(32)]
HOT = {"broker": 1, "purgatory": "Produce", "key": KEYS[0], "client": 0}
PARQUET_LINES = 50_000
LINE = (
    '{{"ts_ms":{ts},"run_id":"bench","side":"sim","broker":{broker},"purgatory":"{purgatory}",'
    '"operation_id":{id},"event":"{event}","keys":["{key}"],"api":"{purgatory}",'
    '"client_id":"client-{client}","delay_ms":{delay},{rest},"watched":{parked},'
    '"num_delayed":{parked}}}\n'
)
BEGUN = '"waited_ms":null,"lateness_ms":null,"completed_by":null,"error_code":null'


def write_trace(path: Path, events: int, seed: int = 7, hot_share: float = 0.0) -> None:
    """Write so many events, three per operation, in the order of their operations' beginning.

    `hot_share` of the operations have the same broker, purgatory, client and key.
    """
    rng = random.Random(seed)
    ts = START_MS
    with path.open("w", encoding="utf-8") as out:
        for operation_id in range(1, events // EVENTS_PER_OPERATION + 1):
            ts += operation_id % 4 == 0
            purgatory, delay = ("Produce", 1_500) if rng.random() < 0.4 else ("Fetch", 500)
            key = KEYS[min(int(rng.expovariate(0.2)), len(KEYS) - 1)]
            expired = rng.random() < 0.05
            late = int(rng.expovariate(0.5)) if expired else 0
            waited = delay + late if expired else min(int(rng.expovariate(0.05)), delay - 1)
            common = {
                "broker": operation_id % 3 + 1, "purgatory": purgatory, "id": operation_id,
                "key": key, "client": rng.randrange(20), "delay": delay,
                "parked": rng.randrange(40),
            }  # fmt: skip
            if hot_share and rng.random() < hot_share:
                common |= HOT
            end = (
                f'"waited_ms":{waited},"lateness_ms":{late if expired else "null"},'
                f'"completed_by":"{"timer" if expired else "key:" + key}",'
                f'"error_code":{7 if expired else 0}'
            )
            out.write(LINE.format(ts=ts, event="tried", rest=BEGUN, **common))
            out.write(LINE.format(ts=ts, event="parked", rest=BEGUN, **common))
            outcome = "expired" if expired else "completed"
            out.write(LINE.format(ts=ts + waited, event=outcome, rest=end, **common))


def write_parquet(trace: Path, directory: Path) -> None:
    """Write the same events as `broker-sim run --trace FILE.parquet` does."""
    sink = ParquetSink(directory)
    with trace.open(encoding="utf-8") as lines:
        while chunk := list(islice(lines, PARQUET_LINES)):
            sink.write([line.rstrip("\n") for line in chunk])
            sink.end_period()
    sink.close()

"""Random traces, shuffled and repeated, against a model of one dict per operation."""

import random

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.soak(part="spark")]

T = 1_700_000_000_000
ENDINGS = ("completed", "expired", "cancelled")


def _random_trace(rng, event):
    """Return events of which any may be missing or repeated."""
    rows = []
    for operation_id in range(1, 80):
        base = {"operation_id": operation_id, "broker": rng.randint(1, 2), "delay_ms": rng.choice([0, 100, 5_000])}
        at = T + rng.randint(0, 200_000)
        for kind in ("tried", "parked", "end"):
            for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2])):
                step = event(**base, ts_ms=at + rng.randint(-1, 3), event=kind)
                if kind == "end":
                    step["event"] = rng.choice(ENDINGS)
                    step["waited_ms"] = rng.randint(0, 50)
                    step["completed_by"] = rng.choice([None, "immediate", "timer"])
                    if step["event"] == "expired":
                        step["lateness_ms"] = rng.randint(-1, 5)
                rows.append(step)
            at += rng.randint(0, 20)
    rng.shuffle(rows)
    return rows


def _model(rows, grace_ms):
    """Return (outcome, end, problems) per operation, in plain Python."""
    lives = {}
    for row in rows:
        lives.setdefault((row["broker"], row["operation_id"]), []).append(row)
    last_ms = max(row["ts_ms"] for row in rows)
    found = {}
    for key, steps in lives.items():
        tried = sorted(s["ts_ms"] for s in steps if s["event"] == "tried")
        parked = sorted(s["ts_ms"] for s in steps if s["event"] == "parked")
        ends = sorted(s["ts_ms"] for s in steps if s["event"] in ENDINGS)
        open_since = (parked or tried or [last_ms])[0] if not ends else last_ms
        allowed_ms = grace_ms + (steps[0]["delay_ms"] if parked else 0)
        overdue = open_since + allowed_ms < last_ms
        checks = {
            "never tried": not tried,
            "tried twice": len(tried) > 1,
            "parked twice": len(parked) > 1,
            "ended twice": len(ends) > 1,
            "parked and never ended": overdue and parked,
            "tried and never ended": overdue and not parked,
            "ended before it began": ends and ends[0] < (parked or tried or [0])[0],
            "parked before it was tried": parked and tried and parked[0] < tried[0],
        }
        problems = {name for name, wrong in checks.items() if wrong}
        found[key] = ((tried or [None])[0], (parked or [None])[0], (ends or [None])[0], problems)
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_traces_agree_with_the_model(events_frame, event, seed):
    from broker_sim_integration.pipeline.jobs.lifecycle import GRACE_MS, broken_lifecycles, lifecycles, run_spans

    rows = _random_trace(random.Random(seed), event)
    frame = events_frame(rows)
    lives = lifecycles(frame)
    expected = _model(rows, GRACE_MS)
    times = {(r.broker, r.operation_id): (r.tried_at_ms, r.parked_at_ms, r.ended_at_ms) for r in lives.collect()}
    assert times == {key: value[:3] for key, value in expected.items()}, f"seed {seed}"
    depends_on_the_end = {"parked and immediate", "expired too early"}
    problems = {
        (r.broker, r.operation_id): set(r.problems) - depends_on_the_end
        for r in broken_lifecycles(lives, run_spans(frame)).collect()
    }
    assert {k: p for k, p in problems.items() if p} == {key: value[3] for key, value in expected.items() if value[3]}, (
        f"seed {seed}"
    )

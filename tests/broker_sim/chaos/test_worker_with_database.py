"""A worker whose local database is locked by a transaction when it is killed."""

import asyncio
import sqlite3

import pytest

from broker_sim.chaos import Schedule, run_chaos
from broker_sim.chaos.chaos import failure_text

CRASHES = Schedule.parse(
    "seed=1 workers=1 duration_ms=6000\n1500 crash worker-1 for=100\n3500 slow_start worker-1 for=200 value=0.1"
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sink.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE amounts (amount INTEGER)")
    database.close()
    return path


@pytest.fixture
def opened():
    """Return the list of what workers open; it is closed at the end."""
    opened = []
    yield opened
    for database in opened:
        database.close()


def storing(path, opened, *, gives_back):
    """Return a test whose worker writes two amounts a second, with a wait inside of each transaction."""

    async def test(chaos):
        stored, starts = [], []

        async def worker(me):
            database = sqlite3.connect(path, timeout=0, isolation_level="IMMEDIATE")
            opened.append(database)
            starts.append(me.starts)
            if gives_back:
                me.on_death(lambda: starts.append("before"))
                me.on_death(database.close)
            while True:
                with database:
                    database.execute("INSERT INTO amounts VALUES (1)")
                    await asyncio.sleep(0.5)
                stored.append(1)

        chaos.start(worker)
        await chaos.faults_over()
        await asyncio.sleep(0.3)
        assert starts == [1, "before", 2, "before", 3]
        reader = sqlite3.connect(path)
        assert reader.execute("SELECT count(*) FROM amounts").fetchone() == (len(stored),)
        reader.close()

    return test


def test_resources_of_a_killed_process_are_released_last_first(path, opened):
    outcome = run_chaos(storing(path, opened, gives_back=True), CRASHES)
    assert outcome.error is None
    assert [one.what for one in outcome.moments].count("starts again") == 2


def test_lock_without_on_death_stays_locked(path, opened):
    outcome = run_chaos(storing(path, opened, gives_back=False), CRASHES)
    assert failure_text(outcome.error).startswith(
        "OperationalError: database is locked (at test_worker_with_database.py:"
    )


@pytest.mark.parametrize(("verb", "when"), [("check", "every moment"), ("eventually", "is true")])
def test_condition_that_raises_is_named_with_its_place(path, verb, when):
    async def test(chaos):
        reader = sqlite3.connect(path)
        told = getattr(chaos, verb)(lambda: reader.execute("SELECT 1").fetchone(), "it is stored")
        if verb == "eventually":
            await told
            reader.close()
            await chaos.eventually(lambda: reader.execute("SELECT 1"), "it is stored")
        reader.close()

    outcome = run_chaos(test, Schedule(1, duration_ms=1_000))
    assert outcome.invariant == "ProgrammingError"
    error, note = failure_text(outcome.error).splitlines()
    assert error.startswith("ProgrammingError: Cannot operate on a closed database. (at test_worker_with_database.py:")
    assert note.startswith("  raised by the condition of 'it is stored', which is called ")
    assert when in note

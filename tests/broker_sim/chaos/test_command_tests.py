"""What `broker-sim chaos MODULE:FUNCTION` gives a test, shows of its asserts, and refuses."""

import sys

import pytest

from broker_sim.chaos import Schedule, ScheduleError, run_chaos
from broker_sim.chaos.assertions import shown_values
from broker_sim.chaos.search import NamedTest, NoSuchTestError, load_test
from broker_sim.chaos.settings import Settings
from broker_sim.errors import ConfigError

CALM = Schedule(1, brokers=1, workers=1, duration_ms=0)
MODULE = """
import pytest


def without_async(chaos):
    pass


async def without_argument():
    pass


async def with_fixture(chaos, database):
    pass


@pytest.mark.chaos(sedes=3)
async def with_misspelt_marker(chaos):
    pass


async def with_directory(chaos, tmp_path):
    assert not [*tmp_path.iterdir()]
    (tmp_path / "file").touch()
    chaos.note("test", str(tmp_path))


async def with_directory_first(tmp_path, chaos):
    assert tmp_path.is_dir()
    assert chaos.workers == []


async def sums(chaos):
    expected, sums = {"a": 1, "b": 2}, {"a": 1, "b": 3}
    assert sums == expected
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module of tests that can be imported."""
    (tmp_path / "shop_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    load_test.cache_clear()
    yield "shop_tests"
    sys.modules.pop("shop_tests", None)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("without_async", "is not written with async def"),
        ("without_argument", "let it take the argument chaos, which starts its workers"),
        (
            "with_fixture",
            "takes database, which pytest alone can give it: run it with pytest, or let it take chaos and",
        ),
    ],
)
def test_what_is_no_test_is_refused(module, function, message):
    with pytest.raises(NoSuchTestError, match=message):
        NamedTest.of(f"{module}:{function}")


def test_misspelt_argument_of_the_marker_is_refused(module):
    with pytest.raises(ConfigError, match="there is no argument 'sedes'"):
        NamedTest.of(f"{module}:with_misspelt_marker")


def test_kind_that_there_is_not_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="schedule: 100 explode broker-1: there is no kind 'explode'"):
        Settings(schedule="seed=1\n100 explode broker-1")
    with pytest.raises(ScheduleError, match="there is no kind 'explode'"):
        run_chaos(None, Schedule.parse("seed=1\n100 explode broker-1"))


def test_each_run_has_an_empty_directory_of_its_own(module):
    test = NamedTest.of(f"{module}:with_directory")
    first, second = (test.run(CALM) for _ in range(2))
    assert (first.error, second.error) == (None, None)
    assert first.moments[0].what != second.moments[0].what
    assert NamedTest.of(f"{module}:with_directory_first").run(CALM).error is None


def test_assert_shows_its_values_outside_of_pytest_too(module, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if "Assertion" not in type(each).__name__])
    monkeypatch.setattr("_pytest.assertion.util._reprcompare", None)
    outcome = NamedTest.of(f"{module}:sums").run(CALM)
    lines = outcome.text.splitlines()
    assert lines[0] == "assert {'a': 1, 'b': 3} == {'a': 1, 'b': 2}"
    assert "  {'b': 3} != {'b': 2}" in lines
    assert outcome.invariant == "AssertionError at shop_tests.py:35"


def test_import_hook_is_gone_afterwards(module):
    before = [*sys.meta_path]
    with shown_values(module):
        pass
    assert sys.meta_path == before

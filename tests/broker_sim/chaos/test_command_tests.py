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
        ("without_async", "is not an async function"),
        ("without_argument", "add the argument chaos, which starts the workers"),
        (
            "with_fixture",
            "has the arguments database, which only pytest can provide: run it with pytest, or",
        ),
    ],
)
def test_what_is_no_test_is_refused(module, function, message):
    with pytest.raises(NoSuchTestError, match=message):
        NamedTest.of(f"{module}:{function}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("shop_tests.py:with_directory", "as shop_tests:with_directory"),
        ("shop_tests.py::with_directory[1]", "as shop_tests:with_directory"),
        ("./shop_tests::with_directory", "as shop_tests:with_directory"),
        ("shop_tests.with_directory", "as shop_tests:with_directory"),
        ("shop_tests.py", "as shop_tests:FUNCTION"),
        ("slow/shop_tests.py:with_directory", "as slow.shop_tests:with_directory"),
        ("../shop_tests.py:with_directory", "go to the directory [.][.], and name it shop_tests:with_directory"),
        ("shop-tests.py:with_directory", "Python cannot import shop-tests.py: rename it"),
        ("node", "a command is written after --"),
        ("./run.sh", "a command is written after --"),
        ("shop_test:with_directory", r"did you mean shop_tests\?"),
        ("shop_tests:with_direktory", r"did you mean with_directory\?"),
    ],
)
def test_nearly_the_name_of_a_test_is_refused_with_the_name_to_write(module, monkeypatch, tmp_path, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop-tests.py").write_text(MODULE)
    with pytest.raises(NoSuchTestError, match=message):
        load_test(name)


def test_misspelt_argument_of_the_marker_is_refused(module):
    with pytest.raises(ConfigError, match="unknown argument 'sedes'"):
        NamedTest.of(f"{module}:with_misspelt_marker")


def test_kind_that_there_is_not_is_refused_before_anything_runs():
    with pytest.raises(ConfigError, match="schedule: 100 explode broker-1: unknown kind 'explode'"):
        Settings(schedule="seed=1\n100 explode broker-1")
    with pytest.raises(ScheduleError, match="unknown kind 'explode'"):
        run_chaos(None, Schedule.parse("seed=1\n100 explode broker-1"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("100 cras worker-1", r"did you mean crash\?"),
        ("100 long_freeze worker-1", "long_freeze is a plot, which is drawn: name it in --faults or faults="),
        ("100 delay brokers value=Produce", "pass an API and milliseconds, such as value=Produce/400"),
        ("100 lose brokers value=Produc", r"did you mean Produce\?"),
    ],
)
def test_nearly_an_action_is_refused_with_what_to_write(line, message):
    with pytest.raises(ConfigError, match=message):
        Settings(schedule=f"seed=1\n{line}")


@pytest.mark.parametrize("name", ["crahs", "crash_in_move"])
def test_nearly_a_kind_or_a_plot_is_refused_with_its_name(name):
    with pytest.raises(ConfigError, match=r"did you mean crash(_in_a_move)?\?"):
        Settings(faults=[name])


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

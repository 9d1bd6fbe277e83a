"""Events: who sees them, with which values and at which time."""

import logging
import subprocess
import sys

import pytest
import structlog
from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.event_log import EVENT_ATTRIBUTE, get_logger

MODULE = "broker_sim.replica.partition"


@pytest.fixture
def log():
    return get_logger(MODULE)


@pytest.fixture
def configured_structlog():
    lines = []
    structlog.configure(
        processors=[lambda _logger, level, event: lines.append((level, event)) or str(event)],
        logger_factory=structlog.ReturnLoggerFactory(),
    )
    yield lines
    structlog.reset_defaults()


def test_modules_of_a_room_share_a_logger(log, caplog):
    log.warning("seen")
    assert [record.name for record in caplog.records] == ["broker_sim.replica"]


def test_warnings_and_errors_are_shown_by_default(log, caplog):
    for method in (log.debug, log.info, log.warning, log.error):
        method("seen")
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    caplog.set_level("INFO", "broker_sim")
    log.info("changed")
    assert caplog.messages[-1] == "changed"


def test_bound_values_precede_those_of_the_event(log, caplog):
    bound = log.bind(node="broker-1").bind(leader=2)
    bound.warning("refused", reason="a b", node_count=3)
    assert caplog.messages == ["refused node='broker-1' leader=2 reason='a b' node_count=3"]
    assert getattr(caplog.records[0], EVENT_ATTRIBUTE) == {
        "event": "refused",
        "node": "broker-1",
        "leader": 2,
        "reason": "a b",
        "node_count": 3,
    }


def test_records_have_the_time_of_the_bound_clock(log, caplog):
    clock = VirtualClock(wall_start_ms=1_700_000_000_250)
    log.bind(clock).bind(node="broker-1").warning("seen")
    clock.advance(1_000)
    log.bind(clock).warning("seen")
    assert [record.created for record in caplog.records] == [1_700_000_000.25, 1_700_000_001.25]
    assert [record.msecs for record in caplog.records] == [250, 250]


def test_structlog_of_the_program_gets_the_events(log, caplog, configured_structlog):
    clock = VirtualClock(wall_start_ms=1_700_000_000_250)
    log.bind(clock, node="broker-1").warning("refused", reason="full")
    log.info("quiet")
    ((level, event),) = configured_structlog
    assert level == "warning"
    assert event == {
        "event": "refused",
        "logger": "broker_sim.replica",
        "node": "broker-1",
        "reason": "full",
        "timestamp": "2023-11-14T22:13:20.250+00:00",
    }
    assert caplog.records == []


def test_an_event_does_not_import_structlog():
    code = (
        "import sys; from broker_sim.runtime.event_log import get_logger\n"
        "get_logger('broker_sim.log').warning('shown'); print('structlog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
    assert done.stderr == "shown\n"


def test_info_is_computed_only_if_it_is_enabled(log, caplog):
    assert not log.is_enabled_for_info
    caplog.set_level(logging.INFO, "broker_sim.replica")
    assert log.is_enabled_for_info

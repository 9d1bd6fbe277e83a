"""What the log of a command looks like, and that it leaves nothing behind."""

import json
import logging

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.cli.logs import logs_on_stderr
from broker_sim.runtime.event_log import get_logger

log = get_logger("broker_sim.broker").bind(VirtualClock(wall_start_ms=1_700_000_000_250), node="broker-1")


def test_console_line_has_time_level_logger_and_values(capsys):
    with logs_on_stderr("info"):
        log.info("broker_started", epoch=5)
    (line,) = capsys.readouterr().err.splitlines()
    time, level, *rest = line.split()
    assert time == "2023-11-14T22:13:20.250Z"
    assert (level, rest) == ("[info", ["]", "broker_started", "[broker_sim.broker]", "node=broker-1", "epoch=5"])


def test_json_lines_are_those_of_other_libraries_too(capsys):
    with logs_on_stderr("info", "json"):
        log.info("broker_started", isr=[1, 2])
        logging.getLogger("aiohttp").error("lost %s", "it")
    event, other = map(json.loads, capsys.readouterr().err.splitlines())
    assert event == {
        "timestamp": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "broker_sim.broker",
        "event": "broker_started",
        "node": "broker-1",
        "isr": [1, 2],
    }
    assert (other["logger"], other["level"], other["event"]) == ("aiohttp", "error", "lost it")


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_traceback_is_part_of_the_record(capsys, log_format):
    with logs_on_stderr("error", log_format):
        try:
            raise ValueError("wrong")  # noqa: TRY301 - a traceback is what is logged
        except ValueError:
            logging.getLogger("asyncio").exception("a callback failed")
    shown = capsys.readouterr().err
    assert "a callback failed" in shown
    assert "ValueError: wrong" in shown
    assert log_format == "console" or len(shown.splitlines()) == 1


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_level_is_the_lowest_that_is_shown(capsys, level, shown):
    with logs_on_stderr(level):
        for method in (log.debug, log.info, log.warning, log.error):
            method("seen")
    assert len(capsys.readouterr().err.splitlines()) == shown


def test_logging_is_as_before_afterwards(capsys, caplog):
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    with pytest.raises(KeyError), logs_on_stderr("debug"):
        raise KeyError
    assert (root.level, list(root.handlers)) == before
    log.warning("afterwards")
    assert capsys.readouterr().err == ""
    assert len(caplog.records) == 1

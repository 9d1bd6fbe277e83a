"""What `broker-sim top` shows, recorded with a terminal in memory."""

import io
import os
import sys

import pytest
from click.testing import CliRunner
from rich.console import Console

from broker_sim.cli.key_press import is_left, keys_at_once
from broker_sim.cli.top import command, watch
from broker_sim.cli.top_view import render, rows_that_fit
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from purgatory import VirtualClock


def _operation(keys, age_ms, level, bucket):
    return {"keys": keys, "age_ms": age_ms, "wheel_level": level, "wheel_bucket": bucket}


def _answer(completed=0, expired=0, parked=()):
    fetch = {
        "name": "Fetch",
        "watched": 7,
        "num_delayed": len(parked),
        "completed": completed,
        "expired": expired,
        "parked": list(parked),
    }
    return {"brokers": [{"id": 3, "purgatories": [fetch]}]}


PARKED = [
    _operation(["hot-0"], 120, 2, 4),
    _operation(["hot-0", "cold-1"], 480, 2, 4),
    _operation(["hot-0"], 30, 2, 19),
    _operation(["other-5"], 5, 1, 0),
]


@pytest.fixture
def terminal():
    return Console(record=True, width=100, file=io.StringIO(), force_terminal=True)


def _rows(terminal, table):
    """Return the rows of a table of the recorded terminal, as lists of words."""
    lines = terminal.export_text(clear=False).splitlines()
    titles = [line.strip() for line in lines]
    start = titles.index(table) + 4
    end = next((i for i in range(start, len(lines)) if not titles[i]), len(lines))
    return [line.split() for line in lines[start:end]]


def test_first_update_shows_parked_operations_and_no_rates(terminal):
    terminal.print(render(_answer(parked=PARKED), None, 0.0))
    assert _rows(terminal, "purgatories") == [["3", "Fetch", "4", "7", "-", "-", "480", "ms"]]


def test_rates_are_the_changes_between_updates_per_second(terminal):
    terminal.print(render(_answer(110, 7), _answer(10, 2), 2.5))
    assert _rows(terminal, "purgatories") == [["3", "Fetch", "0", "7", "40.0", "2.0", "-"]]


def test_restarted_broker_has_no_negative_rates(terminal):
    terminal.print(render(_answer(0, 0), _answer(10, 2), 1.0))
    assert _rows(terminal, "purgatories")[0][4:6] == ["0.0", "0.0"]


def test_wheels_show_how_full_each_bucket_is(terminal):
    terminal.print(render(_answer(parked=PARKED), None, 0.0))
    rows = _rows(terminal, "wheels")
    assert [row[:3] + row[-1:] for row in rows] == [
        ["3", "Fetch", "1", "1"],
        ["3", "Fetch", "2", "3"],
    ]
    text = terminal.export_text()
    assert "█" + " " * 19 in text
    assert "    █" + " " * 14 + "▄" in text


def test_hottest_key_stands_first(terminal):
    terminal.print(render(_answer(parked=PARKED), None, 0.0))
    assert _rows(terminal, "hottest keys") == [
        ["3", "Fetch", "hot-0", "3"],
        ["3", "Fetch", "cold-1", "1"],
        ["3", "Fetch", "other-5", "1"],
    ]


def test_watch_updates_count_times_and_takes_rates_by_the_clock(terminal):
    clock = VirtualClock()
    answers = iter([_answer(0), _answer(30), _answer(90)])
    watch(
        lambda: next(answers),
        clock=clock,
        pause=lambda: bool(clock.advance(2_000)),
        count=3,
        console=terminal,
    )
    assert "30.0" in terminal.export_text()
    assert clock.now_ms() == 4_000
    assert next(answers, None) is None


def test_answer_of_a_cluster_can_be_shown(terminal):
    cluster = VirtualCluster(brokers=2)
    terminal.print(render(cluster.purgatory().to_json(), None, 0.0))
    names = {row[1] for row in _rows(terminal, "purgatories")}
    assert {"Produce", "Fetch"} <= names


def test_unreachable_cluster_is_one_line_that_says_what_to_do():
    result = CliRunner().invoke(command, ["--control", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no cluster answers" in result.output


def test_groups_are_shown_when_there_are_any(terminal):
    group = {"id": "shop", "type": "classic", "state": "Stable", "coordinator": 2, "members": [{}], "lag": 7}  # fmt: skip
    terminal.print(render(_answer() | {"groups": [group]}, None, 0.0))
    assert _rows(terminal, "groups") == [["shop", "classic", "Stable", "2", "1", "7"]]


@pytest.mark.parametrize("height", [10, 16, 24, 25, 26, 40])
def test_picture_fits_into_the_terminal_and_says_what_it_leaves_out(height):
    terminal = Console(width=100, height=height, record=True, file=io.StringIO())
    purgatories = [_answer(parked=PARKED[:number])["brokers"][0] for number in (1, 4, 2)]
    answer = {"brokers": [{**each, "id": number} for number, each in enumerate(purgatories)]}
    terminal.print(render(answer, None, 0.0, height))
    lines = terminal.export_text().splitlines()
    assert len(lines) <= height
    all_rows = 3 + 6 + 4
    rows = sum("Fetch" in line for line in lines)
    left_out = all_rows - rows
    assert lines[-1] == (f"{left_out} more rows; q quits" if left_out else "q quits")
    assert rows >= 2
    if left_out:
        first = next(line.split() for line in lines if "Fetch" in line)
        assert first[:3] == ["1", "Fetch", "4"], "the one with most parked"


@pytest.mark.parametrize(
    ("counts", "lines", "shown"),
    [
        ([24, 10, 6], 40, [21, 2, 2]),
        ([3, 10, 6], 30, [3, 10, 2]),
        ([24, 10, 6], 16, [4, 2, 0]),
        ([1, 0, 6], 14, [1, 0, 3]),
        ([24, 10], 6, [0, 0]),
        ([24, 10], 7, [2, 0]),
    ],
)
def test_tables_share_the_lines(counts, lines, shown):
    assert rows_that_fit(counts, lines) == shown
    assert sum(each + 5 for each in shown if each) <= lines


def test_watch_ends_when_it_is_left(terminal):
    pauses = iter([False, True])
    watch(_answer, clock=VirtualClock(), pause=lambda: next(pauses), console=terminal)
    assert next(pauses, None) is None


@pytest.mark.parametrize(("key", "leaves"), [(b"q", True), (b"Q", True), (b"x", False)])
def test_q_leaves_without_the_enter_key(monkeypatch, key, leaves):
    controller, terminal = os.openpty()
    with os.fdopen(controller, "wb", buffering=0) as keyboard, os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with keys_at_once() as descriptor:
            assert not is_left(descriptor, 0)
            keyboard.write(key)
            assert is_left(descriptor, 30) is leaves


def test_without_a_terminal_there_are_no_keys(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with keys_at_once() as descriptor:
        assert descriptor is None
    assert not is_left(None, 0)

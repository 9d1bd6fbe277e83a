"""What `broker-sim top` shows, recorded with a terminal in memory."""

import io
import os
import sys

import pytest
from broker_sim_purgatory import VirtualClock
from click.testing import CliRunner
from rich.console import Console

from broker_sim.cli.top import command, unbuffered_keys, wait_for_quit, watch
from broker_sim.cli.top_view import render, rows_that_fit
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster


def _operation(keys, age_ms, level, bucket):
    place = {"wheel_level": level, "wheel_bucket": bucket}
    return {"keys": keys, "age_ms": age_ms, "waits_for": f"broker {level} to fetch", **place}


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
    assert _rows(terminal, "purgatories") == [
        ["3", "Fetch", "4", "7", "-", "-", "480", "ms", "broker", "2", "to", "fetch"]
    ]


def test_rates_are_the_changes_between_updates_per_second(terminal):
    terminal.print(render(_answer(110, 7), _answer(10, 2), 2.5))
    assert _rows(terminal, "purgatories") == [["3", "Fetch", "0", "7", "40.0", "2.0", "-", "-"]]


def test_restarted_broker_has_no_negative_rates(terminal):
    terminal.print(render(_answer(0, 0), _answer(10, 2), 1.0))
    assert _rows(terminal, "purgatories")[0][4:6] == ["0.0", "0.0"]


def test_wheels_show_how_full_each_bucket_is(terminal):
    terminal.print(render(_answer(parked=PARKED), None, 0.0))
    rows = _rows(terminal, "wheels")
    assert [row[:3] + row[-1:] for row in rows] == [["3", "Fetch", "1", "1"], ["3", "Fetch", "2", "3"]]
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
    watch(lambda: next(answers), clock=clock, pause=lambda: bool(clock.advance(2_000)), count=3, console=terminal)
    assert "30.0" in terminal.export_text()
    assert clock.now_ms() == 4_000
    assert next(answers, None) is None


def test_answer_of_a_cluster_can_be_shown(terminal):
    with VirtualCluster(brokers=2, topics=["orders:1:2"]) as cluster:
        cluster.advance(1_000)
        terminal.print(render(cluster.purgatory().to_json(), None, 0.0))
    names = {row[1] for row in _rows(terminal, "purgatories")}
    assert names == {"Fetch"}, "the follower's long poll; the other purgatories are idle"


@pytest.mark.parametrize(
    ("now", "before", "shown"),
    [
        pytest.param({"watched": 0, "completed": 10}, {"completed": 10}, False, id="idle"),
        pytest.param({"watched": 1, "completed": 10}, {"completed": 10}, True, id="watched"),
        pytest.param({"watched": 0, "completed": 11}, {"completed": 10}, True, id="completed"),
        pytest.param({"watched": 0, "completed": 10}, None, False, id="idle at the first look"),
    ],
)
def test_purgatory_in_which_nothing_happens_is_left_out(terminal, now, before, shown):
    looks = [None if facts is None else _answer(facts["completed"]) for facts in (now, before)]
    looks[0]["brokers"][0]["purgatories"][0]["watched"] = now["watched"]
    terminal.print(render(*looks, 1.0))
    assert ("Fetch" in terminal.export_text()) == shown


def test_unreachable_cluster_is_one_line_that_says_what_to_do():
    result = CliRunner().invoke(command, ["--control", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert "no cluster answers" in result.output


GROUP = {
    "id": "shop", "type": "classic", "state": "Stable", "coordinator": 2, "members": [{}], "lag": 7,
    "share_partitions": [],
}  # fmt: skip
SHARE_PARTITION = {
    "topic": "orders", "partition": 0, "start_offset": 3, "lag": 4,
    "in_flight": [
        {"first_offset": 3, "last_offset": 5, "state": "Acquired", "delivery_count": 2},
    ],
}  # fmt: skip
TRANSACTION = {
    "transactional_id": "billing-1", "state": "Ongoing", "pending_state": None, "coordinator": 2,
    "producer_id": 1000, "producer_epoch": 3, "age_ms": 75_000,
    "partitions": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}],
}  # fmt: skip
PRODUCER = {
    "topic": "orders", "partition": 0, "producer_id": 1000, "producer_epoch": 3, "last_sequence": 41,
    "transaction_start_offset": 17, "transactional_id": "billing-1", "is_hanging": False,
}  # fmt: skip
OF_CLIENTS = {"groups": [GROUP], "transactions": [TRANSACTION], "producers": [PRODUCER]}


def test_what_coordinators_know_is_shown_when_there_is_any(terminal):
    terminal.print(render(_answer() | OF_CLIENTS, None, 0.0))
    assert _rows(terminal, "groups") == [["shop", "classic", "Stable", "2", "1", "7"]]
    assert _rows(terminal, "transactions") == [
        ["billing-1", "Ongoing", "75", "s", "1000/3", "2", "orders-0,", "orders-1"]
    ]
    assert _rows(terminal, "producers") == [["orders-0", "1000/3", "41", "17", "billing-1"]]


def test_on_40_columns_nothing_that_is_shown_is_cut():
    terminal = Console(width=40, record=True, file=io.StringIO())
    terminal.print(render(_answer(parked=PARKED) | OF_CLIENTS, None, 0.0, width=40))
    text = terminal.export_text(clear=False)
    assert max(map(len, text.splitlines())) <= 40
    assert "…" not in text
    assert _rows(terminal, "purgatories") == [["3", "Fetch", "4", "480", "ms"]]
    assert _rows(terminal, "hottest keys")[0] == ["3", "hot-0", "3"]
    assert _rows(terminal, "wheels") == [["3", "Fetch", "1", "1"], ["3", "Fetch", "2", "3"]]
    assert _rows(terminal, "groups") == [["shop", "classic", "Stable", "1", "7"]]
    assert _rows(terminal, "transactions") == [["billing-1", "Ongoing", "75", "s", "1000/3"]]
    assert _rows(terminal, "producers") == [["orders-0", "1000/3", "17"]]


def test_share_partitions_are_shown_where_a_group_has_some(terminal):
    group = GROUP | {"type": "share", "share_partitions": [SHARE_PARTITION]}
    terminal.print(render(_answer() | OF_CLIENTS | {"groups": [group]}, None, 0.0))
    assert _rows(terminal, "share partitions") == [["shop", "orders-0", "3", "4", "3", "0", "2"]]


@pytest.mark.parametrize(("changed", "is_first"), [({}, True), ({"age_ms": None, "state": "CompleteCommit"}, False)])
def test_open_transaction_has_its_place_on_a_low_terminal(changed, is_first):
    terminal = Console(width=100, height=14, record=True, file=io.StringIO())
    answer = _answer(parked=PARKED) | {"transactions": [TRANSACTION | changed]}
    terminal.print(render(answer, None, 0.0, 14, 100))
    text = terminal.export_text()
    assert len(text.splitlines()) <= 14
    assert ("billing-1" in text) is is_first
    assert ("hottest keys" in text) is not is_first


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


def test_watch_ends_at_a_key_that_quits(terminal):
    pauses = iter([False, True])
    watch(_answer, clock=VirtualClock(), pause=lambda: next(pauses), console=terminal)
    assert next(pauses, None) is None


@pytest.mark.parametrize(("key", "leaves"), [(b"q", True), (b"Q", True), (b"x", False)])
def test_q_leaves_without_the_enter_key(monkeypatch, key, leaves):
    controller, terminal = os.openpty()
    with os.fdopen(controller, "wb", buffering=0) as keyboard, os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with unbuffered_keys() as descriptor:
            assert not wait_for_quit(descriptor, 0)
            keyboard.write(key)
            assert wait_for_quit(descriptor, 30) is leaves


def test_without_a_terminal_there_are_no_keys(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with unbuffered_keys() as descriptor:
        assert descriptor is None
    assert not wait_for_quit(None, 0)

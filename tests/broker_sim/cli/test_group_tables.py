"""Tables of groups, share partitions, transactions and producers lose nothing on 80 columns; what waits is first."""

import io

import pytest
from rich.console import Console

from broker_sim.cli.columns import fitted_table
from broker_sim.cli.group_tables import LISTINGS, group_tables

TOPIC = "a-topic-with-a-rather-long-name-that-is-in-use-somewhere.orders.v1"
GROUPS, SHARE_PARTITIONS, TRANSACTIONS, PRODUCERS = LISTINGS
GROUP = {
    "id": TOPIC, "type": "consumer", "state": "CompletingRebalance", "coordinator": 1001,
    "lag": 1234567890, "members": [], "offsets": [], "share_partitions": [],
}  # fmt: skip
SHARE_PARTITION = {
    "topic": TOPIC, "partition": 11, "start_offset": 1234567890, "high_watermark": 1234567890,
    "lag": 1234567890, "in_flight": [],
}  # fmt: skip
IN_FLIGHT = {
    "first_offset": 1234560, "last_offset": 1234563, "state": "Acquired", "delivery_count": 10,
    "member": "5b0f7c7e-6b3c-4a43-9a0e-0d1b2c3d4e5f", "lock_left_ms": 60_000,
}  # fmt: skip
TRANSACTION = {
    "transactional_id": TOPIC, "state": "Ongoing", "pending_state": None, "coordinator": 1001,
    "producer_id": 1000, "producer_epoch": 32767, "age_ms": 5,
    "partitions": [{"topic": TOPIC, "partition": 11}],
}  # fmt: skip
PRODUCER = {
    "topic": TOPIC, "partition": 11, "producer_id": 1000, "producer_epoch": 32767,
    "last_sequence": 2147483647, "transaction_start_offset": 1234567890,
    "transactional_id": TOPIC, "is_hanging": True,
}  # fmt: skip


def lines(table, width=80):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(table)
    return [line.rstrip() for line in console.export_text().splitlines()]


def column(shown, title):
    """Return what stands in a column that is aligned to the left, all of its lines in one."""
    start = shown[2].index(f" {title}") + 1
    return "".join(line[start:].partition("  ")[0].strip() for line in shown[4:])


@pytest.mark.parametrize(
    ("listing", "row", "title", "text"),
    [
        (GROUPS, GROUP, "group", TOPIC),
        (SHARE_PARTITIONS, {"group": TOPIC, **SHARE_PARTITION}, "group", TOPIC),
        (SHARE_PARTITIONS, {"group": TOPIC, **SHARE_PARTITION}, "partition", f"{TOPIC}-11"),
        (TRANSACTIONS, TRANSACTION, "transaction", TOPIC),
        (TRANSACTIONS, TRANSACTION, "partitions", f"{TOPIC}-11"),
        (TRANSACTIONS, {**TRANSACTION, "pending_state": "CompleteCommit"}, "state", "→ CompleteCommit"),
        (PRODUCERS, PRODUCER, "partition", f"{TOPIC}-11"),
        (PRODUCERS, PRODUCER, "transaction", TOPIC),
    ],
)  # fmt: skip
def test_full_table_fits_and_keeps_every_name(listing, row, title, text):
    shown = lines(fitted_table(listing.name, listing.columns, [row], 80, folds=True))
    assert max(map(len, shown)) <= 80
    assert column(shown, title) == text


def test_group_fits_and_keeps_every_partition():
    partition = {"topic": TOPIC, "partition": 11}
    member = {
        "id": "a-client-1-of-many-5b0f7c7e-6b3c-4a43-9a0e-0d1b2c3d4e5f", "instance_id": None,
        "client_id": "a-client-1-of-many", "client_host": "/127.0.0.1", "assignment": [partition],
    }  # fmt: skip
    offset = partition | {"committed_offset": None, "high_watermark": 1234567890, "lag": 1234567890}
    group = GROUP | {"members": [member], "offsets": [offset]}
    _, members, offsets = map(lines, group_tables(group, 80))
    assert max(map(len, members + offsets)) <= 80
    assert column(members, "assignment") == f"{TOPIC}-11"
    assert column(offsets, "topic") == f"{TOPIC}-11"
    assert any(line.split()[-3:] == ["-", "1234567890", "1234567890"] for line in offsets)


def test_share_group_shows_what_is_in_flight():
    free = {"state": "Available", "delivery_count": 2, "member": None, "lock_left_ms": None}
    again = {"first_offset": 1234564, "last_offset": 1234564, **free}
    partition = SHARE_PARTITION | {"in_flight": [IN_FLIGHT, again]}
    group = GROUP | {"type": "share", "share_partitions": [partition]}
    _, _, partitions, in_flight = map(lines, group_tables(group, 80))
    assert max(map(len, partitions + in_flight)) <= 80
    figures = [line.split()[-5:] for line in partitions if line.split()]
    assert ["start", "lag", "acquired", "available", "deliveries"] in figures
    assert ["1234567890", "1234567890", "4", "1", "10"] in figures
    assert column(in_flight, "member") == IN_FLIGHT["member"] + "-"
    assert any("1234560 to 1234563  Acquired" in line for line in in_flight)
    assert any("60 s" in line for line in in_flight)


def test_share_group_with_nothing_in_flight_says_so_by_its_figures():
    group = GROUP | {"type": "share", "share_partitions": [SHARE_PARTITION | {"start_offset": None}]}
    _, _, partitions = map(lines, group_tables(group, 80))
    assert any(line.split()[-5:] == ["-", "1234567890", "0", "0", "-"] for line in partitions)


def order(listing, rows, key):
    return [row[key] for row in listing.sorted({listing.name: rows})]


def test_transactions_that_wait_are_first_then_the_oldest_ones():
    def row(name, state, age_ms, pending_state=None):
        own = {"transactional_id": name, "state": state, "age_ms": age_ms}
        return TRANSACTION | own | {"pending_state": pending_state}

    rows = [
        row("closed", "CompleteCommit", None),
        row("young", "Ongoing", 10),
        row("old", "Ongoing", 9_000),
        row("markers", "PrepareAbort", 400),
        row("unwritten", "Empty", None, "Ongoing"),
        row("also closed", "Empty", None),
    ]
    shown = order(TRANSACTIONS, rows, "transactional_id")
    assert shown == ["markers", "unwritten", "old", "young", "also closed", "closed"]
    waiting = [row["transactional_id"] for row in rows if TRANSACTIONS.waits(row)]
    assert waiting == ["young", "old", "markers", "unwritten"]


def test_producers_that_hang_are_first_then_those_in_a_transaction():
    def row(topic, offset, *, is_hanging=False):
        own = {"topic": topic, "transaction_start_offset": offset, "is_hanging": is_hanging}
        return PRODUCER | own

    rows = [row("a", None), row("c", 7), row("b", 9), row("d", 3, is_hanging=True)]
    assert order(PRODUCERS, rows, "topic") == ["d", "b", "c", "a"]
    shown = lines(fitted_table("t", PRODUCERS.columns, PRODUCERS.sorted({"producers": rows}), 60))
    assert ["3 hangs" in line for line in shown[4:8]] == [True, False, False, False]


def test_groups_that_rebalance_are_first_then_those_of_most_lag():
    def row(name, state, lag):
        return GROUP | {"id": name, "state": state, "lag": lag}

    rows = [row("none", "Stable", 0), row("much", "Empty", 9), row("moves", "PreparingRebalance", 1)]
    assert order(GROUPS, rows, "id") == ["moves", "much", "none"]


def test_share_partitions_with_the_most_deliveries_are_first_then_those_of_most_lag():
    def row(number, lag, *counts, state="Acquired"):
        in_flight = [IN_FLIGHT | {"delivery_count": count, "state": state} for count in counts]
        return SHARE_PARTITION | {"partition": number, "lag": lag, "in_flight": in_flight}

    rows = [row(0, 1), row(1, 9, 1), row(2, 1, 1, 3), row(3, None, 1, state="Available")]
    shown = SHARE_PARTITIONS.sorted({"groups": [GROUP | {"share_partitions": rows}]})
    assert [each["partition"] for each in shown] == [2, 1, 3, 0]
    assert [each["partition"] for each in shown if SHARE_PARTITIONS.waits(each)] == [2, 3]

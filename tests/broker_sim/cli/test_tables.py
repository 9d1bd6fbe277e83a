"""The tables of `broker-sim ctl` on a terminal of 80 columns lose nothing."""

import itertools

import pytest

from broker_sim.cli.tables import print_denials, print_purgatory, print_status

TOPIC = "a-topic-with-a-rather-long-name-that-is-in-use-somewhere.orders.v1"
HOST = "a-host-with-a-long-name.of.some.company.example.com:9092"
ERROR = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
WIDTH = 80


@pytest.fixture
def lines(monkeypatch, capsys):
    """Return a function that returns the lines that a table is printed as."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    def printed(show, answer):
        show(answer)
        return capsys.readouterr().out.splitlines()

    return printed


def column(lines, title):
    """Return what stands in a column that is aligned to the left, all of its lines in one."""
    number, header = next(pair for pair in enumerate(lines) if f" {title} " in pair[1])
    start = header.index(f" {title} ") + 1
    rows = itertools.takewhile(str.strip, lines[number + 2 :])
    return "".join(line[start:].partition("  ")[0].strip() for line in rows)


def test_status_fits_and_keeps_every_id(lines):
    replicas = [
        {"broker": broker, "log_end_offset": 1234567890, "high_watermark": 1234567890} for broker in range(1, 6)
    ]
    partition = {
        "partition": 11, "leader": 3, "leader_epoch": 123, "isr": [1, 2, 3, 4, 5], "replicas": replicas,
    }  # fmt: skip
    fault = {
        "id": 1234, "api": "OFFSET_FOR_LEADER_EPOCH", "broker": 1001, "topic": TOPIC, "partition": 11,
        "error": ERROR, "lose": None, "delay_ms": 30000, "throttle_ms": 0, "count": 100, "hits": 7, "hook": None,
    }  # fmt: skip
    broker = {
        "id": 1001, "address": HOST, "listeners": {"PLAINTEXT": HOST}, "state": "running",
        "fenced": False, "clients_cut_off": True,
    }  # fmt: skip
    status = {
        "memory": {"used_bytes": 0, "limit_bytes": 1},
        "metadata_delay_ms": 0,
        "brokers": [broker],
        "topics": [{"name": TOPIC, "partitions": [partition]}],
        "faults": [fault],
        "links": [{"from": 1001, "to": -1, "drop": True, "delay_ms": 3}],
    }
    shown = lines(print_status, status)
    assert max(map(len, shown)) <= WIDTH
    assert column(shown, "address") == HOST
    assert column(shown, "topic") == f"{TOPIC}-11"
    assert column(shown, "where").replace(" ", "") == f"broker1001,{TOPIC}-11"
    assert column(shown, "effect").replace(" ", "") == f"{ERROR},delay30000ms"
    assert column(shown, "HW") == "1234567890"


def test_empty_partitions_of_internal_topics_are_counted_unless_a_replica_is_missing(lines):
    def partition(number, isr, log_end_offset):
        replicas = [{"broker": each, "log_end_offset": log_end_offset, "high_watermark": 0} for each in (1, 2)]
        return {"partition": number, "leader": 1, "leader_epoch": 0, "isr": isr, "replicas": replicas}

    idle = [partition(number, [1, 2], 0) for number in range(3, 7)]
    offsets = [partition(1, [1], 0), partition(2, [1, 2], 7), *idle]
    status = {"memory": {"used_bytes": 0, "limit_bytes": 1}, "metadata_delay_ms": 0, "brokers": [], "faults": []}
    topics = [{"name": "__consumer_offsets", "partitions": offsets}, {"name": "orders", "partitions": idle[:1]}]
    shown = lines(print_status, {**status, "links": [], "topics": topics})
    rows = [line.split()[0] for line in shown if "-" in line]
    assert rows[:3] == ["__consumer_offsets-1", "__consumer_offsets-2", "orders-3"]
    assert "4 empty partitions of __consumer_offsets are not shown; --json shows them" in shown


def test_a_row_is_one_line_where_no_terminal_limits_it(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    denial = {"time_ms": 0, "principal": "User:billing", "client_host": HOST, "api": "PRODUCE", "operation": "WRITE"}
    print_denials([denial | {"resource_type": "TOPIC", "resource": TOPIC, "rule": "no rule of the topic allows it"}])
    assert sum(TOPIC in line and HOST in line for line in capsys.readouterr().out.splitlines()) == 1


def test_several_listeners_of_a_broker_are_named(lines):
    broker = {
        "id": 1, "address": "in:1", "listeners": {"INSIDE": "in:1", "OUTSIDE": "out:2"},
        "state": "running", "fenced": False, "clients_cut_off": False,
    }  # fmt: skip
    memory = {"used_bytes": 0, "limit_bytes": 1}
    status = {"memory": memory, "metadata_delay_ms": 0, "brokers": [broker]}
    shown = lines(print_status, {**status, "topics": [], "faults": [], "links": []})
    first, second = (line.split() for line in shown if "SIDE" in line)
    assert first[:4] == ["1", "INSIDE", "in:1", "running"]
    assert second == ["OUTSIDE", "out:2"]


def test_purgatory_fits_and_keeps_every_key(lines):
    parked = {
        "operation": "DelayedDeleteRecords", "operation_id": 123456789, "keys": [f"{TOPIC}-11"],
        "waits_for": "broker 2 (paused) to fetch orders-0 from offset 41 on",
        "age_ms": 123456, "time_left_ms": 123456, "wheel_level": 3, "wheel_bucket": 12,
    }  # fmt: skip
    one = {"name": "DeleteRecords", "watched": 1, "num_delayed": 1, "parked": [parked]}
    idle = {"name": "Heartbeat", "watched": 0, "num_delayed": 0, "parked": []}
    shown = lines(print_purgatory, {"brokers": [{"id": 1001, "purgatories": [idle, one]}]})
    assert not any("Heartbeat" in line for line in shown)
    assert max(map(len, shown)) <= WIDTH
    assert column(shown, "keys") == f"{TOPIC}-11"
    assert column(shown, "operation").replace(" ", "") == "DelayedDeleteRecords123456789"


@pytest.mark.parametrize(
    ("used_bytes", "limit_bytes", "text"),
    [
        (0, 1 << 62, "0 bytes of at most 4194304 TB"),
        (1023, 1024, "1023 bytes of at most 1 KB"),
        (1536, 512 << 20, "1.5 KB of at most 512 MB"),
        (11 << 20, 2 << 30, "11 MB of at most 2 GB"),
    ],
)
def test_status_tells_memory_and_its_limit(lines, used_bytes, limit_bytes, text):
    memory = {"used_bytes": used_bytes, "limit_bytes": limit_bytes}
    status = {"memory": memory, "metadata_delay_ms": 0, "brokers": [], "topics": []}
    status |= {"faults": [], "links": []}
    assert lines(print_status, status)[0] == f"memory: {text}"


def test_denials_fit_and_keep_principal_resource_and_rule(lines):
    rule = (
        "MatchingAcl(acl=StandardAcl(resourceType=TOPIC, resourceName=*, patternType=LITERAL,"
        " principal=User:*, host=*, operation=WRITE, permissionType=DENY))"
    )
    denial = {
        "time_ms": 7, "broker": 1, "principal": "User:billing", "client_host": "10.0.0.1",
        "client_id": None, "api": "Produce", "operation": "WRITE", "resource_type": "TOPIC",
        "resource": "orders.v1", "rule": rule,
    }  # fmt: skip
    printed = lines(print_denials, [denial, {**denial, "time_ms": 1_007}])
    assert max(map(len, printed)) <= WIDTH
    assert any("1000 ms" in line for line in printed)
    assert column(printed, "resource") == "TOPIC:orders.v1" * 2
    assert column(printed, "rule").replace(" ", "") == rule.replace(" ", "") * 2

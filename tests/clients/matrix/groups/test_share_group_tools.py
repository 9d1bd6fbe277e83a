"""Kafka's own command line tools for share groups, on both sides."""

import pytest

GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
PARTITIONS = 2
RECORDS = 5
NUMBER = str(PARTITIONS * RECORDS)


def table(printed):
    """Return the rows of a table without its header."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    start = next(index for index, line in enumerate(lines) if line[0] == "GROUP")
    return lines[start + 1 :]


@pytest.fixture
def filled(side, alter_group):
    """Return a topic with records, and a group that reads it from its begin."""
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)
    side.produce(topic, PARTITIONS, RECORDS)
    alter_group(side.bootstrap_servers, group, {"share.auto.offset.reset": "earliest"})
    return topic, group


@pytest.fixture
def read_group(filled, tool):
    """Return topic and group: the console consumer has acknowledged all records."""
    topic, group = filled
    printed = tool(CONSOLE, "--topic", topic, "--group", group, "--max-messages", NUMBER)
    values = [f"value-{index}" for index in range(RECORDS)] * PARTITIONS
    assert sorted(printed.split()) == sorted(values)
    return filled


def lags(tool, group):
    """Return the lag of each topic and partition; where it starts is told late, with the next acknowledgement."""
    rows = table(tool(GROUPS, "--describe", "--group", group, "--offsets"))
    return {(topic, int(partition)): int(lag) for _, topic, partition, _, lag in rows}


@pytest.mark.threads
def test_share_group_is_listed_and_described(tool, read_group):
    topic, group = read_group
    assert lags(tool, group) == {(topic, index): 0 for index in range(PARTITIONS)}
    (state,) = table(tool(GROUPS, "--describe", "--group", group, "--state"))
    assert state[-2:] == ["Empty", "0"]
    assert group in tool(GROUPS, "--list").split()


@pytest.mark.threads
def test_start_offsets_are_reset_and_groups_deleted(tool, read_group):
    topic, group = read_group
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert {row[-1] for row in table(tool(GROUPS, *reset))} == {"0"}
    assert lags(tool, group) == {(topic, index): RECORDS for index in range(PARTITIONS)}
    printed = tool(CONSOLE, "--topic", topic, "--group", group, "--max-messages", NUMBER)
    assert len(printed.split()) == PARTITIONS * RECORDS, "they come once more"
    assert "Successful" in tool(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    assert "successful" in tool(GROUPS, "--delete", "--group", group)
    assert group not in tool(GROUPS, "--list").split()


@pytest.mark.threads
def test_rejected_records_do_not_come_again(side, tool, filled):
    topic, group = filled
    told = ("--topic", topic, "--group", group, "--max-messages")
    assert len(tool(CONSOLE, *told, NUMBER, "--reject").split()) == PARTITIONS * RECORDS
    side.produce(topic, PARTITIONS, 1)
    assert tool(CONSOLE, *told, str(PARTITIONS)).split() == ["value-0"] * PARTITIONS


@pytest.mark.threads
def test_share_consumer_performance_reads_by_a_group(tool, filled):
    topic, group = filled
    printed = tool(PERFORMANCE, "--topic", topic, "--group", group, "--num-records", NUMBER)
    assert f" {NUMBER}," in printed

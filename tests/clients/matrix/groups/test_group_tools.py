"""Kafka's own command line tools for groups, on both sides."""

import pytest
from broker_sim_integration.cluster_under_test.polling import poll_until

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
PARTITIONS = 2
RECORDS = 5


def table(printed):
    """Return the rows of a table by column; those of other tools are separated by spaces too."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    start = next(index for index, line in enumerate(lines) if line[0] == "GROUP")
    header = lines[start]
    return [dict(zip(header, line, strict=False)) for line in lines[start + 1 :]]


@pytest.fixture
def read_group(side, tool):
    """Return topic and group: the console consumer has read and committed all records."""
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)
    side.produce(topic, PARTITIONS, RECORDS)
    number = str(PARTITIONS * RECORDS)
    options = ("--topic", topic, "--group", group, "--from-beginning", "--max-messages", number)
    printed = tool(CONSOLE, *options)
    values = [f"value-{index}" for index in range(RECORDS)] * PARTITIONS
    assert sorted(printed.split()) == sorted(values)
    poll_until(lambda: side.state(group) == "EMPTY", f"{group} is empty")
    return topic, group


@pytest.mark.threads
def test_console_consumer_commits_and_the_group_is_described(side, tool, read_group):
    topic, group = read_group
    assert side.committed(group) == dict.fromkeys(range(PARTITIONS), RECORDS)
    rows = table(tool(GROUPS, "--describe", "--group", group))
    found = {(row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in rows}
    assert found == {(topic, str(index), str(RECORDS), "0") for index in range(PARTITIONS)}
    (row,) = table(tool(GROUPS, "--describe", "--state", "--group", group))
    assert "Empty" in row.values()
    assert group in tool(GROUPS, "--list").split()


@pytest.mark.threads
def test_offsets_are_reset_and_groups_deleted(side, tool, read_group):
    topic, group = read_group
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "2", "--execute")
    rows = table(tool(GROUPS, *reset))
    assert {row["NEW-OFFSET"] for row in rows} == {"2"}
    assert side.committed(group) == dict.fromkeys(range(PARTITIONS), 2)
    deleted = tool(GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert "Successful" in deleted
    assert side.committed(group) == {1: 2}
    assert "successful" in tool(GROUPS, "--delete", "--group", group)
    assert group not in tool(GROUPS, "--list").split()


@pytest.mark.threads
@pytest.mark.parametrize("strategy", ["range", "consumer"])
def test_members_are_described(side, tool, start_member, strategy):
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)
    member = start_member("confluent", group, topic, strategy)
    member.wait_until_owns(PARTITIONS)
    (row,) = table(tool(GROUPS, "--describe", "--members", "--group", group))
    assert row["#PARTITIONS"] == str(PARTITIONS)
    (row,) = table(tool(GROUPS, "--describe", "--state", "--group", group))
    assert "Stable" in row.values()
    member.leave()


@pytest.mark.threads
def test_consumer_performance_reads_by_a_group(side, tool):
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)
    side.produce(topic, PARTITIONS, RECORDS)
    number = str(PARTITIONS * RECORDS)
    printed = tool(PERFORMANCE, "--topic", topic, "--group", group, "--messages", number)
    assert f" {number}," in printed

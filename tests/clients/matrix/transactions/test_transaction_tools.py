"""Kafka's own command line tools for transactions, and kcat as a reader of them, on both sides."""

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

TOOLS = "org.apache.kafka.tools"
PERFORMANCE = f"{TOOLS}.ProducerPerformance"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
CONSOLE = f"{TOOLS}.consumer.ConsoleConsumer"
KEPT, DROPPED = ["kept 1", "kept 2", "kept 3"], ["dropped 1", "dropped 2"]
TIMEOUT_S = 120

pytestmark = pytest.mark.threads


def table(printed):
    """Return the rows of a table by column, whose cells are separated by tabs and spaces."""
    header, *rows = [[cell.strip() for cell in line.split("\t")] for line in printed.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


@pytest.fixture
def mixed(side, transactions):
    """Return a topic with a committed, an aborted and a committed transaction."""
    topic, _ = side.names()
    side.create_topic(topic, 1)
    producer = transactions.producer(topic)
    transactions.send(producer, topic, {0: KEPT[:2]})
    transactions.send(producer, topic, {0: DROPPED}, end="abort")
    transactions.send(producer, topic, {0: KEPT[2:]})
    return topic


@pytest.fixture
def open_transaction(side, transactions):
    """Return topic and transactional id of a transaction that is open, of three records."""
    topic, _ = side.names()
    side.create_topic(topic, 1)
    producer = transactions.producer(f"opened in {topic}")
    transactions.send(producer, topic, {0: KEPT}, end="leave")
    yield topic, f"opened in {topic}"
    del producer


def test_readers_get_committed_records(side, tool, mixed, require_or_skip):
    kcat = shutil.which("kcat")
    if kcat is None:
        require_or_skip("kcat is missing: apt-get install -y --no-install-recommends kcat")

    def by_kcat(isolation):
        command = [kcat, "-b", side.bootstrap_servers, "-C", "-t", mixed, "-o", "beginning", "-e"]
        isolated = ["-q", "-X", f"isolation.level={isolation}"]
        done = subprocess.run(
            [*command, *isolated], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        return done.stdout.splitlines()

    def by_console(isolation, number):
        options = ("--topic", mixed, "--from-beginning", "--max-messages", str(number))
        return tool(CONSOLE, *options, "--isolation-level", isolation).splitlines()

    everything = [*KEPT[:2], *DROPPED, KEPT[2]]
    with ThreadPoolExecutor() as pool:
        committed = pool.submit(by_console, "read_committed", len(KEPT))
        uncommitted = pool.submit(by_console, "read_uncommitted", len(everything))
        assert by_kcat("read_committed") == KEPT
        assert by_kcat("read_uncommitted") == everything
        assert committed.result() == KEPT
        assert uncommitted.result() == everything


def test_performance_tool_commits_its_transactions(side, transactions, tool):
    topic, name = side.names()
    side.create_topic(topic, 2)
    number = 300
    sizes = ("--num-records", str(number), "--record-size", "10", "--throughput", "-1")
    timed = ("--transactional-id", name, "--transaction-duration-ms", "20")
    assert f"{number} records sent" in tool(PERFORMANCE, "--topic", topic, *sizes, *timed)
    with transactions.reader(topic, 2) as reader:
        reader.read_until(number)
        reader.read_to_end()
        assert len(reader.values) == number


def test_open_transaction_is_listed_and_described(tool, open_transaction):
    topic, name = open_transaction
    with ThreadPoolExecutor() as pool:
        listed = pool.submit(tool, TRANSACTIONS, "list")
        by_pattern = pool.submit(
            tool, TRANSACTIONS, "list", "--transactional-id-pattern", f"opened .* {topic}"
        )
        described = pool.submit(tool, TRANSACTIONS, "describe", "--transactional-id", name)
        where = ("--topic", topic, "--partition", "0")
        producers = pool.submit(tool, TRANSACTIONS, "describe-producers", *where)
        hanging = pool.submit(tool, TRANSACTIONS, "find-hanging", "--topic", topic)
    (row,) = [one for one in table(listed.result()) if one["TransactionalId"] == name]
    assert row["TransactionState"] == "Ongoing"
    assert table(by_pattern.result()) == [row]
    (description,) = table(described.result())
    assert description["TransactionState"] == "Ongoing"
    assert description["TopicPartitions"] == f"{topic}-0"
    (producer,) = table(producers.result())
    assert producer["ProducerId"] == row["ProducerId"]
    assert producer["CurrentTransactionStartOffset"] == "0"
    assert table(hanging.result()) == []

"""Kafka's own command line tools for transactions, on both sides."""

import json
import re
import subprocess
from contextlib import ExitStack, contextmanager
from itertools import chain

import pytest
from broker_sim_integration.clients.broker_client import TIMESTAMP_MS, BrokerClient
from broker_sim_integration.cluster_under_test.polling import poll_until
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from broker_sim.protocol import messages
from broker_sim.protocol.records import Record, build_batch

TOOLS = "org.apache.kafka.tools"
TRANSACTIONS = f"{TOOLS}.TransactionsCommand"
PARTITIONS = 2
RECORDS = 12
PATIENCE_S = 120
PRODUCE_WITHOUT_ADDING = 11
"""The last version of Produce that does not add the partition to the transaction."""
VARYING = {
    "Coordinator",
    "CoordinatorId",
    "ProducerId",
    "LastTimestamp",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "Duration(min)",
}
"""Columns with numbers that differ from run to run."""

pytestmark = pytest.mark.threads


def table(printed):
    """Return the rows of a table by column, with `N` for a number that differs from run to run."""
    header, *lines = [[word.strip() for word in line.split("\t")[:-1]] for line in printed.splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    return [{name: "N" if name in VARYING and word.isdigit() else word for name, word in row.items()} for row in rows]


@pytest.fixture
def topic(side):
    topic, _ = side.names()
    side.create_topic(topic, PARTITIONS)
    return topic


@pytest.fixture
def start_alone(tools_java):
    """Return a function that starts a tool in a process of its own: one that ends its JVM."""
    with ExitStack() as started:

        def start(*words):
            command = [*tools_java, *map(str, words)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            started.enter_context(process)
            started.callback(process.kill)
            return process

        yield start


def ended(process):
    """Wait until a tool has ended well; returns what it has printed."""
    printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, printed
    return printed


@pytest.fixture
def open_transaction(transactions, topic):
    """A producer, whose id is the topic's name, with a record in each partition."""
    producer = transactions.producer(topic)
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce(topic, f"open {partition}", partition=partition)
    assert producer.flush(PATIENCE_S) == 0
    return producer


def described(tool, transactional_id):
    (row,) = table(tool(TRANSACTIONS, "describe", "--transactional-id", transactional_id))
    assert row.pop("TransactionalId") == transactional_id
    row["TopicPartitions"] = sorted(filter(None, row["TopicPartitions"].split(",")))
    return row


def listed(tool, pattern, *filters):
    return table(tool(TRANSACTIONS, "list", "--transactional-id-pattern", pattern, *filters))


def producers(tool, topic, partition=0):
    where = ("--topic", topic, "--partition", partition)
    return table(tool(TRANSACTIONS, "describe-producers", *where))


def test_transaction_is_listed_and_described(tool, topic, open_transaction):
    row = {"TransactionalId": topic, "Coordinator": "N", "ProducerId": "N", "TransactionState": "Ongoing"}
    assert listed(tool, f"{topic}.*") == [row]
    assert listed(tool, f"{topic}.+") == []
    assert listed(tool, f"{topic}.*", "--duration-filter", 600_000) == []
    assert described(tool, topic) == {
        "CoordinatorId": "N",
        "ProducerId": "N",
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": "60000",
        "CurrentTransactionStartTimeMs": "N",
        "TransactionDurationMs": "N",
        "TopicPartitions": [f"{topic}-{partition}" for partition in range(PARTITIONS)],
    }
    active = {
        "ProducerId": "N",
        "ProducerEpoch": "0",
        "LatestCoordinatorEpoch": "-1",
        "LastSequence": "0",
        "LastTimestamp": "N",
        "CurrentTransactionStartOffset": "0",
    }
    assert producers(tool, topic, 1) == [active]

    open_transaction.commit_transaction(PATIENCE_S)
    poll_until(lambda: described(tool, topic)["TransactionState"] == "CompleteCommit", "it is complete")
    assert listed(tool, topic) == [row | {"TransactionState": "CompleteCommit"}]
    ended = described(tool, topic)
    assert ended["TopicPartitions"] == []
    done = {"LatestCoordinatorEpoch": "0", "CurrentTransactionStartOffset": "None"}
    assert producers(tool, topic, 1) == [active | done]


def test_unknown_transactional_id_is_told(tool):
    told = tool(TRANSACTIONS, "describe", "--transactional-id", "nobody", code=1)
    assert told == (
        "Failed to describe transaction state of transactional-id `nobody`: DescribeTransactions "
        "request for transactionalId `nobody` failed because the ID could not be found. "
        "Enable debug logging for additional detail.\n"
    )


def test_open_transaction_is_terminated(tool, transactions, topic, open_transaction):
    terminate = ("forceTerminateTransaction", "--transactionalId", topic)
    tool(TRANSACTIONS, *terminate)
    poll_until(lambda: described(tool, topic)["TransactionState"] == "Empty", "it is aborted")
    with pytest.raises(KafkaException) as refused:
        open_transaction.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].code() == KafkaError._FENCED
    with transactions.reader(topic, PARTITIONS) as reader:
        reader.read_to_end()
        assert reader.values == []


@contextmanager
def without_verification(side):
    """Let brokers take transactional records for partitions that nobody has added."""
    name = "transaction.partition.verification.enable"

    def alter(operation):
        entry = ConfigEntry(name, "false", incremental_operation=operation)
        brokers = [
            ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
            for broker in side.admin.list_topics().brokers
        ]
        for broker in brokers:
            (altered,) = side.admin.incremental_alter_configs([broker]).values()
            altered.result(PATIENCE_S)

    alter(AlterConfigOpType.SET)
    try:
        yield
    finally:
        alter(AlterConfigOpType.DELETE)


def leader_of(side, topic):
    """Return a connection to the leader of partition 0."""
    found = side.admin.list_topics(topic, PATIENCE_S)
    broker = found.brokers[found.topics[topic].partitions[0].leader]
    return BrokerClient(broker.host, broker.port)


def hang(client, topic, transactional_id, producer_id):
    """Append a record in a transaction that its coordinator does not know; returns the error."""
    batch = build_batch(
        [Record(b"hangs", timestamp=TIMESTAMP_MS)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    request = messages.ProduceRequest
    records = request.PartitionProduceData(0, batch)
    data = request.TopicProduceData(name=topic, partition_data=[records])
    sent = request(transactional_id, -1, 30_000, [data])
    answer = client.request(sent, PRODUCE_WITHOUT_ADDING, messages.ProduceResponse).message
    return answer.responses[0].partition_responses[0].error_code


def test_hanging_transaction_is_found_and_aborted(side, tool, transactions, topic):
    transactions.producer(topic)
    _, row = tool(TRANSACTIONS, "list", "--transactional-id-pattern", topic).splitlines()
    producer_id = int(row.split()[2])
    with without_verification(side), leader_of(side, topic) as client:
        poll_until(lambda: hang(client, topic, topic, producer_id) == 0, "it is appended")
    side.produce(topic, 1, 1)
    start = producers(tool, topic)[0]["CurrentTransactionStartOffset"]
    assert start == "0"
    find = ("find-hanging", "--topic", topic)
    assert table(tool(TRANSACTIONS, *find)) == [
        {
            "Topic": topic,
            "Partition": "0",
            "ProducerId": "N",
            "ProducerEpoch": "0",
            "CoordinatorEpoch": "-1",
            "StartOffset": "0",
            "LastTimestamp": "N",
            "Duration(min)": "N",
        }
    ]
    assert transactions.open_partitions(topic, PARTITIONS) == {0}
    where = ("--topic", topic, "--partition", 0)
    refused = tool(TRANSACTIONS, "abort", *where, "--start-offset", 1, code=1)
    assert f"Could not find any open transactions starting at offset 1 on partition {topic}-0" in (refused)
    tool(TRANSACTIONS, "abort", *where, "--start-offset", start)
    assert table(tool(TRANSACTIONS, *find)) == []
    assert transactions.open_partitions(topic, PARTITIONS) == set()
    with transactions.reader(topic, PARTITIONS) as reader:
        reader.read_to_end()
        assert reader.values == ["value-0"]


@pytest.mark.parametrize(
    ("isolation", "values"),
    [("read_committed", ["kept", "last"]), ("read_uncommitted", ["kept", "dropped", "last", "open 0"])],
)
def test_console_consumer_reads_what_is_committed(side, tool, transactions, isolation, values):
    topic, _ = side.names()
    side.create_topic(topic, 1)
    producer = transactions.producer(topic)
    transactions.send(producer, topic, {0: ["kept"]})
    transactions.send(producer, topic, {0: ["dropped"]}, end="abort")
    transactions.send(producer, topic, {0: ["last"]})
    producer.begin_transaction()
    producer.produce(topic, "open 0", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    read = ("--topic", topic, "--from-beginning", "--max-messages", len(values))
    printed = tool(f"{TOOLS}.consumer.ConsoleConsumer", *read, "--isolation-level", isolation)
    assert printed.split("\n")[:-1] == values
    producer.abort_transaction(PATIENCE_S)


def test_producer_performance_commits_many_transactions(tool, transactions, topic):
    number = ("--num-records", 200, "--record-size", 10, "--throughput", 400)
    often = ("--transactional-id", topic, "--transaction-duration-ms", 50)
    printed = tool(f"{TOOLS}.ProducerPerformance", "--topic", topic, *number, *often)
    summary = re.sub(r"\d+(\.\d+)?", "N", printed.splitlines()[-1])
    assert printed.startswith("200 records sent, ")
    assert summary == (
        "N records sent, N records/sec (N MB/sec), N ms avg latency, N ms max latency, "
        "N ms Nth, N ms Nth, N ms Nth, N ms Nth."
    )
    poll_until(lambda: described(tool, topic)["TransactionState"] == "CompleteCommit", "it is complete")
    assert int(described(tool, topic)["ProducerEpoch"]) > 1, "one epoch per transaction"
    with transactions.reader(topic, PARTITIONS) as reader:
        reader.read_to_end()
        assert len(reader.values) == 200


def test_verifiable_consumer_reads_what_is_committed(side, tool, start_alone, transactions, tmp_path):
    servers = side.bootstrap_servers
    topic, group = side.names()
    side.create_topic(topic, 1)
    producer = transactions.producer(topic)
    transactions.send(producer, topic, {0: ["dropped"]}, end="abort")
    produce = ("--topic", topic, "--max-messages", RECORDS)
    producing = start_alone(f"{TOOLS}.VerifiableProducer", "--bootstrap-server", servers, *produce)
    sent = events(ended(producing))
    assert [one["offset"] for one in sent if one["name"] == "producer_send_success"] == list(range(2, 2 + RECORDS))
    (total,) = [one for one in sent if one["name"] == "tool_data"]
    assert (total["sent"], total["acked"]) == (RECORDS, RECORDS)

    committed = tmp_path / "consumer.properties"
    committed.write_text("isolation.level=read_committed\n")
    read = ("--topic", topic, "--group-id", group, "--max-messages", RECORDS)
    options = ("--reset-policy", "earliest", "--command-config", committed)
    seen = events(tool(f"{TOOLS}.VerifiableConsumer", *read, *options))
    consumed = [one for one in seen if one["name"] == "records_consumed"]
    assert sum(one["count"] for one in consumed) == RECORDS
    assert consumed[0]["partitions"][0]["minOffset"] == 2
    assert consumed[-1]["partitions"][0]["maxOffset"] == RECORDS + 1
    assert all(one["success"] for one in seen if one["name"] == "offsets_committed")
    assert side.committed(group) == {0: RECORDS + 2}


def events(printed):
    """Return what a verifiable tool has told."""
    return [json.loads(line) for line in printed.splitlines()]


def test_message_copier_copies_each_record_once(side, start_alone, transactions, topic):
    """Some of its transactions are aborted."""
    sink, group = side.names()
    side.create_topic(sink, PARTITIONS)
    values = {partition: [f"{partition}-{number}" for number in range(RECORDS)] for partition in range(PARTITIONS)}
    producer = transactions.producer(topic)
    transactions.send(producer, topic, {key: ["dropped"] for key in values}, end="abort")
    transactions.send(producer, topic, values)
    topics = ("--input-topic", topic, "--output-topic", sink, "--consumer-group", group)
    size = ("--max-messages", RECORDS, "--transaction-size", 3, "--enable-random-aborts")
    told = ("--broker-list", side.bootstrap_servers, *topics, *size)
    copiers = [
        start_alone(f"{TOOLS}.TransactionalMessageCopier", *told, *of_partition)
        for of_partition in (
            ("--input-partition", 0, "--transactional-id", f"{topic}-0"),
            ("--input-partition", 1, "--transactional-id", f"{topic}-1", "--use-group-metadata"),
        )
    ]
    for copier in copiers:
        ended(copier)
    with transactions.reader(sink, PARTITIONS) as reader:
        reader.read_to_end()
        assert sorted(reader.values) == sorted(chain.from_iterable(values.values()))

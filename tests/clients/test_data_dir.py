"""`broker-sim run --data-dir`, stopped and killed in the middle of work, and started again."""

import json
import signal
import subprocess
import sys
from itertools import count

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

pytestmark = pytest.mark.clients

TIMEOUT_S = 120
PARTITIONS = 3
ACKNOWLEDGED_BEFORE_THE_END = 150
CONFIGS = ("broker.session.timeout.ms=120000", "group.initial.rebalance.delay.ms=0")
QUIET = {"log_level": 0}


class Simulator:
    """`broker-sim run` on one directory, over several processes."""

    def __init__(self, directory):
        self.directory = directory
        self.start()

    def start(self, *options):
        command = [sys.executable, "-m", "broker_sim", "run", "--data-dir", str(self.directory)]
        command += [word for config in CONFIGS for word in ("--config", config)]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.bootstrap_servers = json.loads(line)["bootstrap_servers"]

    def end(self, number):
        """Send the signal and wait for the end; what the process wrote to stderr is returned."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=TIMEOUT_S)
        assert self.process.returncode == (0 if number == signal.SIGTERM else -number)
        return errors

    def client(self, make, **config):
        return make({"bootstrap.servers": self.bootstrap_servers, **QUIET, **config})

    def consumer(self, isolation="read_committed"):
        return self.client(
            Consumer,
            **{
                "group.id": "readers",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
            },
        )

    def read_to_the_end(self, topic, isolation):
        """Return the values of the topic by partition, as far as that isolation shows them."""
        consumer = self.consumer(isolation)
        numbers = range(PARTITIONS)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        values, ended = {number: [] for number in numbers}, set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"only {ended} of {PARTITIONS} partitions ended"
            if message.error() is None:
                values[message.partition()].append(message.value())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
        consumer.close()
        return values


@pytest.fixture
def simulator(tmp_path):
    simulator = Simulator(tmp_path / "data")
    yield simulator
    simulator.process.kill()
    simulator.process.communicate(timeout=TIMEOUT_S)


def create_topic(simulator):
    admin = simulator.client(AdminClient)
    made = admin.create_topics([NewTopic("topic", PARTITIONS, 3, config={"segment.bytes": "1048576"})])
    made["topic"].result(TIMEOUT_S)
    resource = ConfigResource(ResourceType.TOPIC, "topic")
    resource.add_incremental_config(
        ConfigEntry("retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def create_user(simulator):
    admin = simulator.client(AdminClient)
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    upsertion = UserScramCredentialUpsertion("alice", credential, b"password")
    admin.alter_user_scram_credentials([upsertion])["alice"].result(TIMEOUT_S)


def credentials_of_all_users(simulator):
    admin = simulator.client(AdminClient)
    described = admin.describe_user_scram_credentials().result(TIMEOUT_S)
    return {
        user: [(info.mechanism, info.iterations) for info in found.scram_credential_infos]
        for user, found in described.items()
    }


def config_of(simulator, name):
    resource = ConfigResource(ResourceType.TOPIC, "topic")
    admin = simulator.client(AdminClient)
    return admin.describe_configs([resource])[resource].result(TIMEOUT_S)[name].value


def transactional(simulator):
    producer = simulator.client(Producer, **{"transactional.id": "mover"})
    producer.init_transactions(TIMEOUT_S)
    return producer


def write_in_transaction(producer, value):
    producer.begin_transaction()
    for partition in range(PARTITIONS):
        producer.produce("topic", value, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


def end_while_writing(simulator, number):
    """Write until enough is acknowledged, end the cluster while more is under way.

    Returns the acknowledged values by partition.
    """
    producer = simulator.client(Producer, acks="all", **{"linger.ms": 1})
    acknowledged = {partition: [] for partition in range(PARTITIONS)}

    def delivered(error, message):
        if error is None:
            acknowledged[message.partition()].append(message.value())

    for index in count():
        producer.produce("topic", b"plain %d" % index, partition=index % PARTITIONS, on_delivery=delivered)
        producer.poll(0)
        if min(map(len, acknowledged.values())) >= ACKNOWLEDGED_BEFORE_THE_END:
            break
    simulator.end(number)
    # The rest fails, or was acknowledged in the last moment: purging tells which.
    producer.purge()
    producer.flush(TIMEOUT_S)
    return acknowledged


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_restarted_cluster_has_everything_that_was_acknowledged(simulator, number):
    create_topic(simulator)
    create_user(simulator)
    producer = transactional(simulator)
    write_in_transaction(producer, b"kept")
    producer.commit_transaction(TIMEOUT_S)
    write_in_transaction(producer, b"dropped")
    producer.abort_transaction(TIMEOUT_S)
    consumer = simulator.consumer()
    committed = [TopicPartition("topic", partition, 1 + partition) for partition in range(PARTITIONS)]
    consumer.commit(offsets=committed, asynchronous=False)
    write_in_transaction(producer, b"open")
    acknowledged = end_while_writing(simulator, number)

    simulator.start()
    found = simulator.read_to_the_end("topic", "read_uncommitted")
    for partition, values in acknowledged.items():
        assert len(values) > 0
        assert found[partition][:3] == [b"kept", b"dropped", b"open"]
        # What was under way may have been written too, but not twice and not out of order.
        assert found[partition][3 : 3 + len(values)] == values
        assert len(set(found[partition])) == len(found[partition])
    assert config_of(simulator, "retention.ms") == "86400000"
    users = {"alice": [(ScramMechanism.SCRAM_SHA_512, 8192)]}
    assert credentials_of_all_users(simulator) == users
    again = simulator.consumer()
    assert [found.offset for found in again.committed(committed, TIMEOUT_S)] == [1, 2, 3]
    # The open transaction hides what follows it, until its producer comes back and it is aborted.
    before = simulator.read_to_the_end("topic", "read_committed")
    assert before == {partition: [b"kept"] for partition in range(PARTITIONS)}
    write_in_transaction(successor := transactional(simulator), b"later")
    successor.commit_transaction(TIMEOUT_S)
    after = simulator.read_to_the_end("topic", "read_committed")
    for partition, values in after.items():
        assert values == [b"kept", *found[partition][3:], b"later"]


def test_second_process_on_the_same_directory_is_refused(simulator):
    done = subprocess.run(
        [sys.executable, "-m", "broker_sim", "run", "--data-dir", str(simulator.directory)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 2
    assert "another process or cluster uses this directory" in done.stderr
    assert simulator.process.poll() is None


def test_seed_gives_other_ids_after_a_restart(tmp_path):
    simulator = Simulator.__new__(Simulator)
    simulator.directory = tmp_path / "data"
    try:
        ids = []
        for topic in ("one", "two"):
            simulator.start("--seed", "7", "--topic", f"{topic}:1:1")
            admin = simulator.client(AdminClient)
            described = admin.list_topics(timeout=TIMEOUT_S).topics
            assert "one" in described
            ids.append(admin.list_topics(timeout=TIMEOUT_S).cluster_id)
            simulator.end(signal.SIGKILL)
        assert ids[0] == ids[1]
    finally:
        simulator.process.kill()
        simulator.process.communicate(timeout=TIMEOUT_S)

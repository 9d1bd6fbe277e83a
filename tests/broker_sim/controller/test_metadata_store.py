import errno
import os
import random

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.controller import (
    AlterOp,
    ClientQuotaAlteration,
    ConfigAlteration,
    ConfigResource,
    ConfigResourceType,
    Controller,
    CreatableTopic,
    MetadataStore,
    NewPartitions,
    ProducerIdControlManager,
    ScramDeletion,
    ScramUpsertion,
)
from broker_sim.controller import metadata_store as module
from broker_sim.errors import ApiError, ConfigError, ErrorCode
from broker_sim.metadata.acl import Acl, AclFilter, AclOperation, PatternType, Permission, ResourceType
from broker_sim.metadata.delegation_token import token_hmac
from broker_sim.metadata.kafka_principal import KafkaPrincipal


def acl(name):
    return Acl(ResourceType.TOPIC, name, PatternType.PREFIXED, "User:a", "*", AclOperation.READ, Permission.DENY)


class Machine:
    """A controller that keeps its metadata in a file, over several processes."""

    def __init__(self, path):
        self.path = path
        self.clock = VirtualClock(wall_start_ms=1_000)
        self.start()

    def start(self):
        self.store = MetadataStore(self.path)
        restored = self.store.load()
        next_id = 0 if restored is None else restored.next_producer_id
        self.controller = Controller(
            self.clock,
            random.Random(self.path.name + str(next_id)),
            BrokerConfig(delegation_token_secret_key="secret"),
            publish=self.store.write_image,
            cluster_id="cluster",
            producer_ids=ProducerIdControlManager(next_id, self.store.write_next_producer_id),
            restored=None if restored is None else restored.image,
        )
        self.store.begin(self.controller.image, next_id)

    def restart(self):
        self.store.close()
        self.start()

    def register(self, broker_id, incarnation=b"i" * 16):
        epoch = self.controller.register_broker(
            broker_id,
            endpoints=(Endpoint("IN", "h", 9092), Endpoint("OUT", "i", 9093)),
            rack="r",
            incarnation_id=incarnation,
        )
        self.controller.broker_heartbeat(broker_id, epoch, wants_shutdown=False, current_metadata_version=1 << 40)
        return epoch

    def change_everything(self):
        for broker_id in (1, 2, 3):
            epoch = self.register(broker_id)
        controller = self.controller
        controller.create_topics(
            [
                CreatableTopic("one", num_partitions=3, replication_factor=3),
                CreatableTopic("two", num_partitions=1, replication_factor=2),
                CreatableTopic("gone", num_partitions=1, replication_factor=1),
            ]
        )
        controller.create_partitions([NewPartitions("two", 4, None)])
        controller.delete_topics(["gone"])
        for kind, name, key, value in (
            (ConfigResourceType.TOPIC, "one", "retention.ms", "5"),
            (ConfigResourceType.BROKER, "1", "log.cleaner.threads", "2"),
            (ConfigResourceType.GROUP, "g", "consumer.session.timeout.ms", "50000"),
        ):
            controller.incremental_alter_configs(
                [(ConfigResource(kind, name), [ConfigAlteration(key, AlterOp.SET, value)])]
            )
        controller.alter_user_scram_credentials(
            [], [ScramUpsertion(name, 1, 4096, b"salt", b"salted") for name in ("kept", "gone")]
        )
        controller.alter_user_scram_credentials(
            [ScramDeletion("gone", 1)], [ScramUpsertion("kept", 2, 8192, b"", b"salted")]
        )
        for quota in (1.0, None):
            controller.alter_client_quotas(
                [
                    ClientQuotaAlteration((("user", "gone"),), [("producer_byte_rate", quota)]),
                    ClientQuotaAlteration((("client-id", None),), [("request_percentage", 0.5)]),
                ]
            )
        alice, bob = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
        controller.create_delegation_token(alice, bob, [bob, alice], 5)
        gone = controller.create_delegation_token(bob, bob, [], -1)
        controller.expire_delegation_token(bob, token_hmac("secret", gone.token_id), -1)
        controller.create_acls([acl("kept"), acl("gone")])
        controller.delete_acls([AclFilter(resource_name="gone")])
        controller.end_session(1)
        controller.allocate_producer_ids(3, epoch)


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path / "controller.metadata")
    yield machine
    machine.store.close()


def test_restarted_controller_has_the_same_image(machine):
    machine.change_everything()
    image = machine.controller.image
    assert image.topics["two"].partitions[3].replicas
    assert image.topics["one"].configs == {"retention.ms": "5"}
    assert {mechanism: each.salt for mechanism, each in image.scram["kept"].items()} == {1: b"salt", 2: b""}
    assert image.client_quotas == {(("client-id", None),): {"request_percentage": 0.5}}
    assert list(image.acls) == [acl("kept")]
    (token,) = image.delegation_tokens.values()
    assert token.is_owner_or_renewer(KafkaPrincipal("User", "bob"))
    machine.restart()
    assert machine.controller.image == image
    assert list(machine.controller.image.topics) == ["one", "two"]
    machine.restart()
    assert machine.controller.image == image


def test_changes_after_a_restart_are_kept(machine):
    machine.change_everything()
    machine.restart()
    machine.controller.delete_topics(["one"])
    machine.controller.create_topics([CreatableTopic("one", num_partitions=1, replication_factor=1)])
    machine.controller.alter_user_scram_credentials([ScramDeletion("kept", 1)], [])
    machine.controller.delete_acls([AclFilter(resource_name="kept")])
    machine.controller.create_acls([acl("new")])
    image = machine.controller.image
    machine.restart()
    assert machine.controller.image == image
    assert list(image.acls) == [acl("new")]
    assert len(image.topics["one"].partitions) == 1
    assert list(image.scram["kept"]) == [2]


def test_producer_ids_are_never_given_twice(machine):
    epoch = machine.register(1)
    first = machine.controller.allocate_producer_ids(1, epoch)
    machine.restart()
    second = machine.controller.allocate_producer_ids(1, epoch)
    assert second.first_producer_id == first.first_producer_id + first.size


def test_restarted_broker_may_register_at_once(machine):
    before = machine.register(1)
    machine.restart()
    assert machine.register(1, b"j" * 16) > before


def test_cut_last_line_is_dropped(machine):
    machine.change_everything()
    content = machine.path.read_bytes()
    whole = content[: content.rindex(b"\n", 0, -1) + 1]
    machine.store.close()
    machine.path.write_bytes(whole)
    known = MetadataStore(machine.path).load()
    machine.path.write_bytes(whole + b'{"version":999,"topics":{"x"')
    assert MetadataStore(machine.path).load() == known


def test_damaged_line_is_refused(machine):
    machine.change_everything()
    machine.store.close()
    machine.path.write_bytes(b"{}\n" + machine.path.read_bytes())
    with pytest.raises(ConfigError, match="is damaged"):
        MetadataStore(machine.path).load()


def test_flipped_bit_is_refused_with_its_place_unless_it_is_at_the_end(machine):
    machine.change_everything()
    machine.store.close()
    content = machine.path.read_bytes()
    *_, last_line = content.splitlines()
    before = MetadataStore(machine.path).load()
    assert before.is_whole
    for seed in range(100):
        rng = random.Random(seed)
        position = rng.randrange(len(content))
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.randrange(8)
        machine.path.write_bytes(damaged)
        print(f"seed {seed}: byte {position}")
        line = content[:position].count(b"\n") + 1
        start = content.rfind(b"\n", 0, position) + 1
        if start == len(content) - len(last_line) - 1:  # as if it had never been written
            stored = MetadataStore(machine.path).load()
            assert stored == before._replace(is_whole=False)
        else:
            with pytest.raises(ConfigError, match=f"is damaged in line {line}, at byte {start}:"):
                MetadataStore(machine.path).load()


def test_lost_end_is_cut_and_logged(machine, caplog):
    machine.change_everything()
    machine.store.close()
    content = machine.path.read_bytes()
    known = MetadataStore(machine.path).load()
    assert "metadata_cut" not in caplog.text
    *_, last, closed = content.splitlines(keepends=True)
    good_bytes = len(content) - len(last) - len(closed)
    for end in (last[:-5], bytes(len(last)) + b"\n" + bytes(10)):
        caplog.clear()
        machine.path.write_bytes(content[:good_bytes] + end)
        stored = MetadataStore(machine.path).load()
        assert not stored.is_whole
        assert stored != known
        assert f"at_byte={good_bytes} lost_bytes={len(end)}" in caplog.text


def test_metadata_of_a_controller_that_was_killed_is_not_whole(machine):
    machine.change_everything()
    assert not MetadataStore(machine.path).load().is_whole
    machine.store.close()
    assert MetadataStore(machine.path).load().is_whole
    machine.start()
    assert not MetadataStore(machine.path).load().is_whole


def test_file_cut_anywhere_has_an_older_image(machine):
    machine.change_everything()
    machine.store.close()
    content = machine.path.read_bytes()
    for seed in range(50):
        size = random.Random(seed).randrange(content.index(b"\n") + 1, len(content))
        machine.path.write_bytes(content[:size])
        print(f"seed {seed}: cut at {size}")
        lines = content[:size].count(b"\n")
        image = MetadataStore(machine.path).load().image
        machine.path.write_bytes(b"".join(content.splitlines(keepends=True)[:lines]))
        assert image == MetadataStore(machine.path).load().image


def test_file_is_written_anew_when_it_has_grown(machine, monkeypatch):
    monkeypatch.setattr(module, "SMALLEST_REWRITE_BYTES", 2_000)
    machine.restart()
    machine.change_everything()
    sizes = []
    for number in range(100):
        alteration = ConfigAlteration("retention.ms", AlterOp.SET, str(number))
        resource = ConfigResource(ConfigResourceType.TOPIC, "one")
        machine.controller.incremental_alter_configs([(resource, [alteration])])
        sizes.append(machine.path.stat().st_size)
    assert max(sizes) < 20_000
    assert min(sizes[50:]) < max(sizes)
    image = machine.controller.image
    machine.restart()
    assert machine.controller.image == image


class FullDisk:
    """Writes so many bytes, as a disk that becomes full; None is a disk with room."""

    def __init__(self):
        self.room_bytes = None
        self.write_to_disk = os.write

    def write(self, descriptor, content):
        if self.room_bytes is None:
            return self.write_to_disk(descriptor, content)
        if not self.room_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.write_to_disk(descriptor, content[: self.room_bytes])
        self.room_bytes -= written
        return written


@pytest.fixture
def disk(monkeypatch):
    disk = FullDisk()
    monkeypatch.setattr(module.os, "write", disk.write)
    return disk


def create(machine, name):
    machine.controller.create_topics([CreatableTopic(name, num_partitions=1, replication_factor=1)])


@pytest.mark.parametrize("room_bytes", [0, 40])
@pytest.mark.parametrize("how", ["next change", "tick", "close"])
def test_change_that_cannot_be_written_is_written_later(machine, disk, caplog, room_bytes, how):
    machine.register(1)
    whole = machine.path.read_bytes()
    disk.room_bytes = room_bytes
    create(machine, "lost")
    disk.room_bytes = room_bytes
    create(machine, "lost-too")
    assert machine.path.read_bytes() == whole
    assert caplog.text.count("metadata_write_failed") == 1
    assert "why='No space left on device'" in caplog.text
    disk.room_bytes = None
    if how == "next change":
        create(machine, "next")
    elif how == "tick":
        machine.store.write_pending()
        size_bytes = machine.path.stat().st_size
        machine.store.write_pending()
        assert machine.path.stat().st_size == size_bytes
    else:
        machine.store.close()
    image = machine.controller.image
    assert {"lost", "lost-too"} <= image.topics.keys()
    assert MetadataStore(machine.path).load().image == image


def test_half_a_line_that_could_not_be_cut_is_cut_before_the_next(machine, disk, monkeypatch):
    machine.register(1)
    disk.room_bytes = 40
    with monkeypatch.context() as patched:
        patched.setattr(module.os, "ftruncate", disk.write)  # it has no room: an OSError
        create(machine, "one")
    assert not machine.path.read_bytes().endswith(b"\n")
    disk.room_bytes = None
    create(machine, "two")
    machine.restart()
    assert list(machine.controller.image.topics) == ["one", "two"]


def test_producer_ids_that_cannot_be_written_are_not_given(machine, disk):
    epoch = machine.register(1)
    disk.room_bytes = 0
    with pytest.raises(ApiError, match="Cannot write") as refused:
        machine.controller.allocate_producer_ids(1, epoch)
    assert refused.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    disk.room_bytes = None
    block = machine.controller.allocate_producer_ids(1, epoch)
    machine.restart()
    again = machine.controller.allocate_producer_ids(1, epoch)
    assert again.first_producer_id == block.first_producer_id + block.size


def test_file_that_cannot_be_written_anew_is_used_on(machine, disk, monkeypatch, caplog):
    machine.change_everything()
    monkeypatch.setattr(module, "SMALLEST_REWRITE_BYTES", 1_000)
    machine.restart()
    in_the_way = machine.path.with_suffix(".tmp")
    in_the_way.mkdir()
    while "action='rewrite the file' why='Is a directory'" not in caplog.text:
        create(machine, f"topic-{machine.path.stat().st_size}")
    in_the_way.rmdir()
    create(machine, "last")
    image = machine.controller.image
    machine.restart()
    assert machine.controller.image == image


def test_file_without_a_whole_line_is_refused(machine):
    content = machine.path.read_bytes()
    machine.path.write_bytes(content[:-1])
    with pytest.raises(ConfigError, match="has no complete line"):
        MetadataStore(machine.path).load()

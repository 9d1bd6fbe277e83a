"""Broker 1 of three as its handlers see it: the real controller, purgatories and configuration.

Requests and responses go through the codec in the version that they are asked in, so a test also
states that the version can carry them. The only stand-in is the link to the controller, which is a
call here.
"""

import random
from random import Random

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock

from broker_sim.broker.dynamic_broker_config import DynamicBrokerConfig
from broker_sim.broker.producer_ids import ProducerIds
from broker_sim.broker.txn_marker_writer import TxnMarkerWriter
from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.controller import Controller, CreatableTopic, IsrMember, PartitionAlteration
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FetchManager
from broker_sim.handlers import RequestContext
from broker_sim.handlers.denial_log import DenialLog
from broker_sim.handlers.faults import FaultInjector
from broker_sim.log import LogManager, ProducerStateManagerConfig
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.release import find_release
from broker_sim.quota import QuotaManagers, ReplicationQuotas
from broker_sim.replica import LogDirMoves, Purgatories, ReplicaManager, TransactionalAppends
from broker_sim.runtime.action_queue import ActionQueue
from broker_sim.security import ANONYMOUS, make_authorizer
from tests.broker_sim.broker_contexts import broker_context


class NobodyHasBegun:
    """The `AddPartitionsToTxnManager` of a cluster without transactions."""

    def verify(self, transactional_id, _id, _epoch, topic_partitions, on_result, *, adds):
        assert transactional_id
        assert adds in {True, False}
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        on_result(dict.fromkeys(topic_partitions, code))


class AlwaysOpen:
    """The connection of a request that is answered."""

    may_ask_for_tokens = False
    sends_files = False
    listener = "PLAINTEXT"
    principal = ANONYMOUS
    ip = "127.0.0.1"
    port = 40_000

    def close(self, reason=""):
        raise AssertionError(f"closed: {reason}")


class NoTransactions:
    """The `AddPartitionsToTxnManager` of a cluster in which nobody has begun a transaction."""

    def verify(self, transactional_id, producer_id, producer_epoch, partitions, on_result, *, adds):
        """Answer as a coordinator that does not know the transactional id."""
        code = ErrorCode.INVALID_PRODUCER_ID_MAPPING if transactional_id else ErrorCode.INVALID_REQUEST
        on_result(dict.fromkeys(partitions, code))


class BrokerOne:
    """The services of broker 1, and the cluster around it."""

    broker_id = 1
    release = find_release()

    def __init__(self, configs=None, brokers=(1, 2, 3)):
        self.clock = VirtualClock()
        self.random = Random(1)
        self.faults = FaultInjector(random.Random(1))
        self.config = BrokerConfig.from_mapping(configs or {})
        self.check_dynamic_configs = DynamicBrokerConfig(self.broker_id, self.config).validate
        self.denials = DenialLog()
        self.authorizer = make_authorizer(self.config)
        self.logs = LogManager(self.clock)
        self._timers = []
        purgatories = Purgatories(lambda name, _: self._purgatory(name), self.config)
        actions = ActionQueue()
        quotas = ReplicationQuotas(self.config, self.clock, self.broker_id, lambda _: {})
        self.log_dir_moves = LogDirMoves(self.logs, lambda *_: None, self.config, quotas.moves)
        self.replica_manager = ReplicaManager(
            purgatories, actions, lambda _: True, quotas.leader, offline_partitions=self.logs.offline
        )
        self.transactional_appends = TransactionalAppends(
            self.replica_manager,
            NobodyHasBegun(),
            actions,
            self.config,
            ProducerStateManagerConfig(),
            clock=self.clock,
            call_later=lambda *_: None,
        )
        markers = TxnMarkerWriter(self.replica_manager, None, self.clock, self.config.request_timeout_ms)
        self.write_txn_markers = markers.write
        slots = self.config.max_incremental_fetch_session_cache_slots
        self.fetch_manager = FetchManager(self.clock, slots, lambda: Random(3))
        self.controller_quotas = QuotaManagers(self.config, self.clock).controller_mutation
        self.image = MetadataImage(-1, "cluster")
        self.metadata_is_held = False
        self.controller_endpoints = ()
        self._held = []
        self.active = Controller(self.clock, Random(2), self.config, publish=self._hear, cluster_id="cluster")
        self._hear(self.active.image)
        self._epochs = {}
        context = broker_context(self, clock=self.clock, broker_epoch=lambda: self._epochs.get(self.broker_id, -1))
        self.next_producer_id = ProducerIds(context, self).next_id
        for broker_id in brokers:
            self.start(broker_id)

    # -- services ---------------------------------------------------------------------------------

    @property
    def controller(self):
        return self

    def run_beside(self, work, on_done, *, is_short=False):
        on_done(work())

    def call(self, verb, on_result, on_refusal):
        try:
            result = verb(self.active)
        except ApiError as error:
            on_refusal(error)
        else:
            on_result(result)

    # -- requests ---------------------------------------------------------------------------------

    def send(self, handler, request, version, client_id="test", connection=None):
        """Hand over a request; the list gets its response, now or when it is answered."""
        answers = []
        connection = connection or AlwaysOpen()
        context = RequestContext(self, connection, ApiKey(request.API_KEY), version, client_id)
        request = _over_the_wire(request, version)
        context.faults = self.faults.hit(request, context)
        handler(request, context, lambda response: answers.append(_over_the_wire(response, version)))
        return answers

    def ask(self, handler, request, version, client_id="test", connection=None):
        """Return the response to a request that is answered at once."""
        (response,) = self.send(handler, request, version, client_id, connection)
        return response

    # -- the cluster ------------------------------------------------------------------------------

    def hold_metadata(self):
        """Let this broker hear of no change until `release_metadata`."""
        self.metadata_is_held = True

    def release_metadata(self):
        self.metadata_is_held = False
        while self._held:
            self._apply(self._held.pop(0))

    def start(self, broker_id):
        """Start a broker, or start it again after `kill`."""
        incarnation = self._epochs.get(broker_id, 0) + 1
        self._epochs[broker_id] = self.active.register_broker(
            broker_id,
            endpoints=(Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id),),
            rack=None,
            incarnation_id=incarnation.to_bytes(16, "big"),
        )
        self._heartbeat(broker_id)

    def kill(self, broker_id):
        """Let the broker's session end."""
        self.pass_time(12_000, without=broker_id)

    def pass_time(self, ms, without=None):
        end_ms = self.clock.now_ms() + ms
        while self.clock.now_ms() < end_ms:
            self.clock.advance_to(min(end_ms, self.clock.now_ms() + 500))
            for timer in self._timers:
                timer.advance_clock(0)
            for broker in self.active.image.alive_brokers():
                if broker.broker_id != without:
                    self._heartbeat(broker.broker_id)
            if self.active.next_deadline_ms() <= self.clock.now_ms():
                self.active.tick()

    def create(self, name, *replicas, **configs):
        """Create a topic whose partitions have exactly these replicas; return its id."""
        configs = {key.replace("_", "."): value for key, value in configs.items()}
        (result,) = self.active.create_topics(
            [CreatableTopic(name, assignments=list(enumerate(replicas)), configs=configs)]
        )
        assert result.outcome.ok, result
        return result.topic_id

    def partition(self, name, number=0):
        """Return the partition as the controller knows it."""
        return self.active.image.partition(TopicPartition(name, number))

    def fill_isr(self, name, number=0):
        """Let the leader take all replicas into the ISR."""
        state = self.partition(name, number)
        change = PartitionAlteration(
            self.active.image.topics[name].topic_id,
            number,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr=[IsrMember(replica) for replica in state.replicas],
        )
        (result,) = self.active.alter_partition(state.leader, self._epochs[state.leader], [change])
        assert not result.error_code, result

    def _purgatory(self, name):
        timer = SystemTimer(name, self.clock, InlineExecutor())
        self._timers.append(timer)
        return DelayedOperationPurgatory(name, timer, reaper_enabled=False)

    def _heartbeat(self, broker_id):
        self.active.broker_heartbeat(
            broker_id, self._epochs[broker_id], wants_shutdown=False, current_metadata_version=self.active.image.version
        )

    def _hear(self, image):
        if self.metadata_is_held:
            self._held.append(image)
        else:
            self._apply(image)

    def _apply(self, image):
        changes = changes_between(self.image, image)
        self.image = image
        for key, _, _ in changes.partitions:
            self.replica_manager.purgatories.elect_leader.check_and_complete(key)


def _over_the_wire(message, version):
    return decode(type(message), version, memoryview(b"".join(encode(message, version))))


@pytest.fixture
def make_broker():
    """Make broker 1 with static configurations: `make_broker({"num.partitions": "2"})`."""
    return BrokerOne


@pytest.fixture
def broker():
    """Return broker 1 of three living brokers."""
    return BrokerOne()

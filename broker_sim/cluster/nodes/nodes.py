"""The nodes of a cluster: the controller, the brokers, and the links between them.

Nodes have no sockets; `Listeners` opens those of the brokers. When a cluster is reset, the coordinators' topics stay,
without groups and transactions: otherwise each test with a consumer would wait until the topic exists again, because
a client that finds no coordinator retries only after a while (librdkafka after a second).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.broker.broker import Broker
from broker_sim.broker.environment import BrokerEnvironment
from broker_sim.broker.late_metadata import MetadataDelay
from broker_sim.cluster.nodes.node import LogMemory, Node, log_doubtful_configs, numbered
from broker_sim.config import takes_client_metrics
from broker_sim.controller import Controller, CreatableTopic, initial_features, supported_features
from broker_sim.errors import UnknownBrokerError, UnknownPartitionError, WrongStateError
from broker_sim.handlers import ApiTable
from broker_sim.handlers.denial_log import DenialLog
from broker_sim.handlers.faults import FaultInjector
from broker_sim.handlers.request_log import RequestLog
from broker_sim.handlers.support.auto_topic_creation import creatable_topic
from broker_sim.handlers.telemetry.client_metrics import ClientMetricsLog
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.release import find_release
from broker_sim.quota import QuotaManagers
from broker_sim.runtime.arguments import checked_ms
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.links import CONTROLLER_ID, HEALTHY, LinkFault, Links
from broker_sim.runtime.process import Handle, Process, ProcessState

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

    from broker_sim.cluster.nodes.data_directory import DataDirectory
    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.log import LogDirectory, PartitionLog, SimulatedDisk
    from broker_sim.metadata import MetadataImage, TopicState
    from broker_sim.protocol.release import Release
    from broker_sim.runtime.purgatories import PurgatoryFactory
    from broker_sim.runtime.scheduler import Scheduler

log = get_logger(__name__)


class Nodes:
    """The brokers, their controller and their links. Thread rule: the scheduler's thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        configs: Mapping[int, BrokerConfig],
        endpoints: Mapping[int, tuple[Endpoint, ...]],
        *,
        cluster_id: str,
        rng: random.Random,
        make_purgatory: PurgatoryFactory,
        latency_ms: Callable[[int, int], int] | None = None,
        on_change: Callable[[], object] = lambda: None,
        release: Release | None = None,
        features: Mapping[str, int] | None = None,
        memory_limit_bytes: int | None = None,
        data: DataDirectory | None = None,
        disks: Mapping[int, SimulatedDisk] | None = None,
    ) -> None:
        """Create the nodes with the content of `data`, an open directory that its owner closes (default: none).

        With simulated `disks` the logs are kept on those.
        """
        restored = None if data is None else data.restored
        cluster_id = cluster_id if restored is None else restored.image.cluster_id
        self._data = data
        self._release = release or find_release()
        self.scheduler = scheduler
        self._log_memory = LogMemory(scheduler, memory_limit_bytes, self._reclaim_memory)
        self.memory = self._log_memory.account
        self._log = log.bind(scheduler.clock)
        self.cluster_id = cluster_id
        self.links = Links(scheduler, latency_ms)
        self.faults = FaultInjector(rng)
        self.metadata_delay = MetadataDelay(rng)
        self.requests = RequestLog()
        self.denials = DenialLog()
        self.client_metrics = ClientMetricsLog()
        self.brokers: dict[int, Broker] = {}
        configs = {key: config.without_newer(self._release.is_at_least) for key, config in configs.items()}
        self._first_config = next(iter(configs.values()))
        self.controller = Controller(
            scheduler.clock,
            rng,
            self._first_config,
            publish=self._publish,
            cluster_id=cluster_id,
            features=initial_features(self._release, features or {}),
            supported_features=supported_features(self._release),
            release=self._release,
            producer_ids=None if data is None else data.producer_ids(),
            restored=None if restored is None else restored.image,
        )
        self._controller_quotas = QuotaManagers(self._first_config, scheduler.clock)
        self._controller_quotas.update(self.controller.image.client_quotas)
        directories = {} if data is None else self._open_data(data, configs)
        self._disks = disks or {}
        self.nodes = {
            broker_id: self._node(config, endpoints[broker_id], directories.get(broker_id, ()))
            for broker_id, config in numbered(configs).items()
        }
        log_doubtful_configs(configs.values(), self._release.is_at_least, self._log)
        self._controller_process = Process("controller", scheduler)
        self.links.attach(CONTROLLER_ID, self._controller_process)
        self.links.listen(CONTROLLER_ID)
        self._environment = BrokerEnvironment(
            cluster_id=cluster_id,
            links=self.links,
            controller=self.controller,
            peers=self.brokers,
            random=rng,
            make_purgatory=make_purgatory,
            faults=self.faults,
            metadata_delay=self.metadata_delay,
            requests=self.requests,
            controller_quotas=self._controller_quotas.controller_mutation,
            denials=self.denials,
            client_metrics=self.client_metrics,
            api_table=ApiTable(self._release, client_metrics=self.takes_client_metrics),
            on_change=on_change,
        )
        self._tick_handle: Handle | None = None
        self._on_turn: Callable[[], object] | None = None

    def _node(self, config: BrokerConfig, endpoints: tuple[Endpoint, ...], directories: Sequence[LogDirectory]) -> Node:
        broker_id, data, count = config.node_id, self._data, len(config.log_dirs or ())
        return Node(
            broker_id,
            config,
            self.scheduler.clock,
            endpoints,
            self.memory,
            directories,
            self._disks.get(broker_id),
            None if data is None else partial(data.reopen_logs, broker_id, count, self.cluster_id),
        )

    def add(self, broker_id: int, config: BrokerConfig, endpoints: tuple[Endpoint, ...]) -> None:
        """Add the node of a broker, dead until `start`. Raises ConfigError and OSError for its directory."""
        config = numbered({broker_id: config.without_newer(self._release.is_at_least)})[broker_id]
        data, count = self._data, len(config.log_dirs or ())
        directories = () if data is None else data.reopen_logs(broker_id, count, self.cluster_id)
        later = [self.nodes.pop(each) for each in list(self.nodes) if each > broker_id]
        for node in (self._node(config, endpoints, directories), *later):
            self.nodes[node.broker_id] = node
        log_doubtful_configs([config], self._release.is_at_least, self._log)
        self._log.info("broker_added", broker=broker_id)

    def remove(self, broker_id: int) -> None:
        """Remove the node and the registration of a dead broker; the files of a data directory stay."""
        node = self.dead(broker_id)
        self.controller.end_session(broker_id)
        if broker_id in self.controller.image.brokers:
            self.controller.unregister_broker(broker_id)
        self.isolate(broker_id, drop=False)
        if self._data is None:
            for log in list(node.logs.logs):
                node.logs.delete(log.topic_partition)
        else:
            self._data.close_logs(broker_id)
        del self.nodes[broker_id]
        self._log.info("broker_removed", broker=broker_id)

    def _open_data(self, data: DataDirectory, configs: Mapping[int, BrokerConfig]) -> dict[int, list[LogDirectory]]:
        """Start storing metadata, open the logs, and end the sessions of former brokers.

        The metadata comes first, so that after a kill in between the next start finds its cluster id.
        """
        counts = {broker_id: len(config.log_dirs or ()) for broker_id, config in configs.items()}
        data.begin(self.controller.image)
        directories = data.open_logs(counts, self.cluster_id)
        for broker_id in self.controller.image.brokers.keys() - configs.keys():
            self.controller.end_session(broker_id)
        return directories

    def _publish(self, image: MetadataImage) -> None:
        if self._data is not None:
            self._data.metadata.write_image(image)
        self._controller_quotas.update(image.client_quotas)
        for broker_id, broker in self.brokers.items():
            self.links.send(CONTROLLER_ID, broker_id, broker.apply_image, image)

    def _tick(self) -> None:
        try:
            self.controller.tick()
            if self._data is not None:
                self._data.metadata.write_pending()
        finally:
            self._schedule_tick()

    def _schedule_tick(self) -> None:
        delay_ms = max(1, self.controller.next_deadline_ms() - self.scheduler.clock.now_ms())
        self._tick_handle = self._controller_process.call_later(delay_ms, self._tick)

    def _reclaim_memory(self) -> None:
        """Make running brokers free deletable records; the logs of other brokers stay as they are."""
        for node in self.nodes.values():
            if node.state is ProcessState.RUNNING:
                node.logs.reclaim()

    def node(self, broker_id: int) -> Node:
        """Return the node. Raises `UnknownBrokerError` with the existing ids."""
        node = self.nodes.get(broker_id)
        if node is None:
            raise UnknownBrokerError(broker_id, self.nodes)
        return node

    def running(self, broker_id: int) -> Node:
        """Return the node of a running broker; raises `WrongStateError` if it is paused or dead."""
        node = self.node(broker_id)
        if node.state is not ProcessState.RUNNING:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}, not running")
        return node

    def alive(self, broker_id: int) -> Node:
        """Return the node of a running or paused broker; raises `WrongStateError` for a dead one."""
        node = self.node(broker_id)
        if node.state is ProcessState.DEAD:
            raise WrongStateError(f"broker {broker_id} is dead; no client is connected to it")
        return node

    def dead(self, broker_id: int) -> Node:
        """Return the node of a dead broker; raises `WrongStateError` for a live one."""
        node = self.node(broker_id)
        if node.state is not ProcessState.DEAD:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}; kill it first")
        return node

    def start(self, broker_id: int) -> Broker:
        """Start a dead broker with its logs; raises `WrongStateError` if it is not dead.

        With a data directory the logs are read from there. Raises ConfigError for a directory of another broker, and
        OSError; the broker then stays dead.
        """
        node = self.dead(broker_id)
        if self._tick_handle is None:
            self._schedule_tick()
        node.recover_logs(self.cluster_id)
        if self._data is not None:
            self._data.skip_known_producer_ids(broker_id, node.logs)
        node.clients_cut_off = False
        node.process = Process(f"broker-{broker_id}", self.scheduler, node.clock)
        node.process.on_turn = self._on_turn
        self.links.attach(broker_id, node.process)
        node.broker = Broker(broker_id, node.config, node.process, node.logs, node.endpoints, self._environment)
        self.brokers[broker_id] = node.broker
        node.broker.start()
        # As in Kafka, a new process reads the metadata log at once, even before it is registered.
        self.links.send(CONTROLLER_ID, broker_id, node.broker.apply_image, self.controller.image)
        return node.broker

    def pause(self, broker_id: int) -> None:
        """Stop the broker's process where it is (SIGSTOP)."""
        process = self.running(broker_id).process
        assert process is not None
        process.pause()
        self._log.info("broker_paused", broker=broker_id)

    def resume(self, broker_id: int) -> None:
        """Let a paused broker continue (SIGCONT)."""
        node = self.node(broker_id)
        if node.process is None or node.state is not ProcessState.PAUSED:
            raise WrongStateError(f"broker {broker_id} is {node.state.value}, not paused")
        self._log.info("broker_resumed", broker=broker_id)
        node.process.resume()

    def stop(self, broker_id: int, on_stopped: Callable[[], object] = lambda: None) -> None:
        """Begin a controlled shutdown (SIGTERM); its logs survive.

        `on_stopped()` is called when the process has ended, by the shutdown or by an earlier `kill`.
        Raises `WrongStateError` for a dead broker, for one that is shutting down already, and for a
        paused one, which could not handle the signal.
        """
        node = self.running(broker_id)
        assert node.broker is not None
        if node.on_stopped is not None:
            raise WrongStateError(f"broker {broker_id} is shutting down already")
        node.on_stopped = on_stopped
        node.broker.shutdown(lambda: self._remove(node))

    def kill(self, broker_id: int) -> None:
        """Kill the broker's process (SIGKILL). Its logs survive."""
        node = self.node(broker_id)
        if node.broker is None or node.state is ProcessState.DEAD:
            raise WrongStateError(f"broker {broker_id} is dead already")
        node.broker.die()
        self._log.info("broker_killed", broker=broker_id)
        self._remove(node)

    def _remove(self, node: Node) -> None:
        """Remove a broker whose process has ended."""
        node.broker = None
        node.process = None
        del self.brokers[node.broker_id]
        self.links.detach(node.broker_id)
        on_stopped, node.on_stopped = node.on_stopped, None
        if on_stopped is not None:
            on_stopped()

    def isolate(self, broker_id: int, drop: bool = True) -> None:
        """Cut a broker off from all other nodes, not from its clients; `drop=False` undoes it."""
        self.node(broker_id)
        for other in (CONTROLLER_ID, *self.nodes):
            if other != broker_id:
                self.links.set_fault(broker_id, other, LinkFault(drop=drop))
                self.links.set_fault(other, broker_id, LinkFault(drop=drop))
        self._log.info("broker_isolated" if drop else "broker_rejoined", broker=broker_id)

    def set_link(self, source: int, target: int, *, drop: bool, delay_ms: int) -> None:
        """Cut or slow the link from one broker to another, or make it healthy again.

        Raises ValueError for a link to itself and for a delay that is negative or too long.
        """
        self.node(source)
        self.node(target)
        if source == target:
            raise ValueError(f"a link goes to another broker, not from {source} to {target}")
        self.links.set_fault(source, target, LinkFault(drop, checked_ms("delay_ms", delay_ms)))
        self._log.info("link_set", source=source, target=target, drop=drop, delay_ms=delay_ms)

    @property
    def takes_client_metrics(self) -> bool:
        """Whether clients may push metrics."""
        return takes_client_metrics(self._first_config.others)

    @property
    def has_authorizer(self) -> bool:
        """Whether the cluster has an authorizer."""
        return bool(self._first_config.authorizer_class_name)

    def make_topics(self, topics: Iterable[CreatableTopic]) -> int:
        """Create topics at the controller, all or none; return the metadata version with them.

        Raises ApiError.
        """
        self.controller.make_topics(topics)
        return self.controller.image.version

    def reset(self, topics: Iterable[CreatableTopic], endpoints: Mapping[int, tuple[Endpoint, ...]]) -> int:
        """Replace all topics by these and by empty topics of the coordinators.

        `endpoints` are the new endpoints of moved brokers. Returns the metadata version. Raises ApiError.
        """
        topics = list(topics)
        own, image = {topic.name for topic in topics}, self.controller.image
        surviving, anew = emptied_topics(self.brokers.values(), image, self._first_config, own)
        self.controller.reset([*topics, *anew], surviving, endpoints)
        for broker_id, moved_to in endpoints.items():
            self.nodes[broker_id].endpoints = moved_to
        return self.controller.image.version

    def delete_topic(self, name: str) -> int:
        """Delete a topic at the controller; return the metadata version without it.

        Raises UnknownPartitionError, and ApiError when `delete.topic.enable` is false.
        """
        topics = self.controller.image.topics
        if name not in topics:
            raise UnknownPartitionError(name, None, topics)
        self.controller.delete_topics([name])
        return self.controller.image.version

    def transfer_leadership(self, topic: str, partition: int, to: int) -> int:
        """Elect another in-sync replica; return the metadata version with it.

        Raises ApiError for a broker that cannot lead the partition.
        """
        self.node(to)
        self.controller.transfer_leadership(TopicPartition(topic, partition), to)
        return self.controller.image.version

    def watch(self, on_turn: Callable[[], object] | None) -> None:
        """Call `on_turn()` whenever a node may have done something; None ends that."""
        self._on_turn = on_turn
        for process in self._processes():
            process.on_turn = on_turn

    def _processes(self) -> list[Process]:
        """Return the live processes."""
        brokers = [node.process for node in self.nodes.values() if node.process is not None]
        return [self._controller_process, *brokers]

    def brokers_have(self, version: int) -> bool:
        """Whether all running brokers that the controller can reach have that version of the metadata."""
        faults = self.links.faults
        return all(
            broker.image.version >= version
            for broker_id, broker in self.brokers.items()
            if self.node(broker_id).state is ProcessState.RUNNING
            and not faults.get((CONTROLLER_ID, broker_id), HEALTHY).drop
        )

    @property
    def is_in_sync(self) -> bool:
        """Whether every partition has a leader and all of its replicas in the ISR."""
        return all(
            state.has_leader and len(state.isr) == len(state.replicas)
            for topic in self.controller.image.topics.values()
            for state in topic.partitions
        )

    @property
    def is_ready(self) -> bool:
        """Whether all live brokers serve and are unfenced, in the view of the controller and of each other."""
        return all(
            broker.is_serving
            and self.controller.image.alive_broker(broker_id) is not None
            and all(broker.metadata.is_alive(other) for other in self.brokers)
            for broker_id, broker in self.brokers.items()
        )

    def halt(self) -> None:
        """Pause all nodes; only `shutdown` may follow.

        A signal handler may call it while a node is running.
        """
        for process in self._processes():
            process.pause()

    def shutdown(self) -> None:
        """Kill all brokers and the controller; logs on disk are closed cleanly."""
        for broker in list(self.brokers.values()):
            if self._data is not None:
                self.nodes[broker.broker_id].logs.shutdown(broker.lifecycle.broker_epoch)
            broker.die()
            self._remove(self.nodes[broker.broker_id])
        if self._tick_handle is not None:
            self._tick_handle.cancel()
        self._log_memory.close()
        self._controller_process.kill()


_TOPICS: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)


def emptied_topics(
    brokers: Collection[Broker], image: MetadataImage, config: BrokerConfig, others: Container[str]
) -> tuple[list[str], list[CreatableTopic]]:
    """Return the coordinators' topics that can stay, and those to be created again.

    Unused topics stay, because creating 50 partitions takes 15 ms. Topics in `others` are left out.
    """
    topics, anew = [], []
    for name in _TOPICS:
        topic = image.topics.get(name)
        if topic is None or name in others:
            continue
        configs = creatable_topic(name, config).configs
        if topic.configs == configs and not _is_used(brokers, topic):
            topics.append(name)
            continue
        count, replicas = len(topic.partitions), len(topic.partitions[0].replicas)
        anew.append(CreatableTopic(name, count, replicas, configs=configs))
    return topics, anew


def _is_used(brokers: Collection[Broker], topic: TopicState) -> bool:
    """Whether a coordinator has written to the topic or has a group that is not written yet."""
    if topic.name == GROUP_METADATA_TOPIC and any(
        shard.groups for broker in brokers for shard in broker.group_shards()
    ):
        return True
    keys = [TopicPartition(topic.name, number) for number in range(len(topic.partitions))]
    return any(
        key in partitions and partitions[key].log.log_end_offset
        for partitions in (broker.replica_manager.partitions for broker in brokers)
        for key in keys
    )


def leads(nodes: Nodes, broker: Broker, topic: str, partition: int) -> bool:
    """Whether the broker leads the partition according to the controller; a paused broker may not know it."""
    state = nodes.controller.image.partition(TopicPartition(topic, partition))
    return state is not None and state.leader == broker.broker_id


def live_leader(nodes: Nodes, key: TopicPartition) -> Broker | None:
    """Return the live leader of the partition, or None."""
    state = nodes.controller.image.partition(key)
    return None if state is None else nodes.brokers.get(state.leader)


def leaders_log(nodes: Nodes, key: TopicPartition) -> PartitionLog | None:
    """Return the log of the partition's live leader, or None."""
    leader = live_leader(nodes, key)
    partition = None if leader is None else leader.replica_manager.partitions.get(key)
    return None if partition is None else partition.log

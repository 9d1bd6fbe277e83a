"""A simulated cluster on an asyncio event loop: the composition root.

On asyncio's own loop and on uvloop the cluster has sockets and real time; on a `VirtualEventLoop` it
has memory pipes and virtual time. Its code is the same on all of them.
"""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, Self

from broker_sim.cluster.arguments import (
    FIRST_BROKER_ID,
    added_config,
    broker_configs_by_id,
    check_cluster_id,
    check_control,
    check_data_dir,
    check_hosts,
    check_ports,
    check_trace,
    control_server,
)
from broker_sim.cluster.listeners.broker_listeners import (
    broker_listeners,
    check_users,
    credentials_of,
    listeners_by_id,
    read_security,
    with_listeners,
)
from broker_sim.cluster.listeners.client_config import CLIENT, Trust, choose_login, client_config
from broker_sim.cluster.listeners.listeners import Listeners
from broker_sim.cluster.nodes.data_directory import DataDirectory
from broker_sim.cluster.nodes.nodes import Nodes
from broker_sim.cluster.text_forms import creatable_topics
from broker_sim.cluster.verbs import WAIT_LIMIT_S, Verbs
from broker_sim.cluster.verbs.base import wait_limit_s
from broker_sim.control.verb import AsyncFace
from broker_sim.controller import check_finalized_features, initial_features
from broker_sim.errors import ClusterTimeoutError, ConfigError, WrongStateError
from broker_sim.protocol.release import find_release
from broker_sim.protocol.uuids import uuid_text
from broker_sim.runtime.arguments import checked_s, names_checked
from broker_sim.runtime.memory import parse_memory_limit
from broker_sim.runtime.purgatories import PurgatoryFactory
from broker_sim.runtime.scheduler import Scheduler
from broker_sim.runtime.sockets import address_text, bare_host
from broker_sim.runtime.system import green_threads
from broker_sim.security import Certificates, TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from broker_sim.config import GivenValue
    from broker_sim.control.server import ControlServer
    from broker_sim.controller import CreatableTopic, ScramUpsertion
    from broker_sim.log import SimulatedDisk
    from broker_sim.runtime.purgatories import ObserverFactory
    from broker_sim.trace import Trace


def unmet(predicate: Callable[[], object], cluster: Verbs) -> str:
    """Return a predicate's name and source line, followed by the state of the cluster in words."""
    code = getattr(predicate, "__code__", None)
    name = repr(predicate)
    if code is not None:
        name = f"{code.co_qualname} ({Path(code.co_filename).name}, line {code.co_firstlineno})"
    return f"{name}\n{cluster.describe()}".rstrip()


def check_threads() -> None:
    """Raise WrongStateError if a green-thread library has replaced threads and sockets of this process."""
    library = green_threads()
    if library is not None:
        raise WrongStateError(
            f"{library} has replaced the threads and sockets of this process, which brokers need: start them as a "
            "separate process with broker-sim run, and give clients its address"
        )


def forked_error(pid: int) -> WrongStateError:
    """Return the error of a call in a child that was forked from the process with the cluster."""
    return WrongStateError(
        f"the cluster runs in process {pid}, from which this one was forked. Clients may connect to it from here, but "
        "verbs must be called there or over its control port (control=True); or open another cluster here"
    )


class Changes:
    """Counts events that may have changed something in a cluster. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters; each checks its condition once per turn of the loop, however often this is called."""
        self.count += 1
        self._event.set()

    async def after(self, count: int) -> int:
        """Wait until the count exceeds `count`; return the new count."""
        while self.count <= count:
            self._event.clear()
            await self._event.wait()
        return self.count


class AsyncCluster(Verbs, AsyncFace):
    """A cluster on one event loop, to be used with `async with`.

    `brokers` is the number of brokers; their ids begin at `first_broker_id`.
    `topics` are created when the cluster is opened; each is `NAME:PARTITIONS:RF:KEY=VALUE`, where all
    but the name may be left out. `configs` are Kafka's broker configurations by name for all brokers,
    `broker_configs` those of single ones; values are texts, numbers or booleans. Brokers listen on
    `host` and on `ports`, one for each (default: any free ones); clients get
    `advertised_host` in place of `host`. With `listeners`, such as
    `"INSIDE://127.0.0.1:19092,OUTSIDE://127.0.0.1:9092"`, they listen there instead, broker 2 on the next ports (0:
    any free one). Each client gets the addresses of the listener that it uses, or those of `advertised_listeners`.
    Kafka's configurations of these names do the same.
    `security` is "plaintext", "ssl", "sasl_plaintext" or "sasl_ssl": TLS uses certificates that the cluster makes,
    logins use `users` (passwords by name); `client_config` returns the configuration of a client. `seed` makes ids
    and random choices the same every time.
    `trace` records the life of every delayed operation: the path of a file, which is closed with the cluster, or a
    `Trace`, which its owner closes. `control` serves the control port: True for any free port, a port number, or an
    existing `ControlServer`; with `control_token` only requests with the token are answered. `as_version` is the
    Kafka release, such as "3.7", whose behaviour is the cluster's; None is the default one, 4.4. `features` are the
    feature levels of a new cluster, such as `{"metadata.version": 19}` (default: those of the release).
    `memory_limit` bounds what the logs of all brokers keep in memory, in bytes or as "512MB"; None is half of the
    machine's. At the limit clients' records are refused with KAFKA_STORAGE_ERROR. With `data_dir` the data is kept in
    that directory, and a cluster that is opened with it again, even after a kill, has all topics, records, groups and
    transactions. Logs then use no memory. `cluster_id` is the cluster's id, printable ASCII without spaces; by default
    it is a UUID, random or drawn from `seed`.

    Raises ConfigError, which is a ValueError, TypeError and UnknownBrokerError for bad arguments; when
    the cluster is opened, OSError for a port in use or a trace that cannot be written, ApiError for
    a topic that Kafka refuses, and ConfigError for a `data_dir` that another process uses. Thread rule: its event
    loop's thread only.
    """

    @names_checked
    def __init__(
        self,
        brokers: int = 3,
        *,
        first_broker_id: int = FIRST_BROKER_ID,
        topics: Sequence[str] = (),
        configs: Mapping[str, GivenValue] | None = None,
        broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None,
        host: str = "127.0.0.1",
        advertised_host: str | None = None,
        ports: Sequence[int] | None = None,
        listeners: str | None = None,
        advertised_listeners: str | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        seed: int | None = None,
        trace: Trace | str | Path | None = None,
        control: bool | int | ControlServer = False,
        control_token: str | None = None,
        as_version: str | None = None,
        features: Mapping[str, int] | None = None,
        memory_limit: int | str | None = None,
        data_dir: str | Path | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self._security = read_security(security, users)
        protocol = self._security.protocol
        configs = with_listeners(configs, listeners, advertised_listeners, protocol)
        configs = self._security.with_configs(configs)
        self._configs = broker_configs_by_id(brokers, configs, broker_configs, first_broker_id)
        self._configs_of = partial(added_config, brokers, configs, broker_configs, first_broker_id)
        check_hosts(host, advertised_host, self._configs)
        check_ports(brokers, ports)
        self._topics = creatable_topics(topics)
        self._seed = seed
        check_data_dir(data_dir)
        check_cluster_id(cluster_id)
        self._cluster_id = cluster_id
        self._data = None if data_dir is None else DataDirectory(data_dir)
        self._rng = random.Random(seed)
        first_config = next(iter(self._configs.values()))
        self._release = find_release(as_version).with_unstable(
            apis=first_config.unstable_api_versions_enable, features=first_config.unstable_feature_versions_enable
        )
        self._features = dict(features or {})
        initial_features(self._release, self._features)  # raises ConfigError for what the release does not have
        check_control(control, control_token)
        self._memory_limit_bytes = None if memory_limit is None else parse_memory_limit(memory_limit)
        self._control_argument = control
        self._control_token = control_token
        self._control: ControlServer | None = None
        self._nodes: Nodes | None = None
        self._was_opened = False
        self._pid = os.getpid()
        self._is_for_clients = False
        """Whether clients may connect: only after the initial topics exist."""
        self.changes = Changes()
        """Counts applied metadata and brokers that accept clients; all other events only while `watched`."""
        self._waiting = 0
        self.certificates = Certificates()
        self.token_issuer = TokenIssuer()
        self._make_listeners = partial(
            broker_listeners,
            host=bare_host(host),
            advertised_host=bare_host(advertised_host or ""),
            protocol=protocol,
            users=self._security.users,
            certificates=self.certificates,
            issuer=self.token_issuer,
            verifies_claims=self._release.is_at_least("4.4"),
        )
        self.listeners = Listeners(
            listeners_by_id(self._configs, ports, self._make_listeners),
            self.changes.notify,
        )
        check_users(self._security, self.listeners.all)
        self._credentials: list[list[ScramUpsertion]] = []
        check_trace(trace)
        self._trace_path = trace if isinstance(trace, str | Path) else None
        self._trace_run_id = random.Random(seed).randbytes(8).hex()
        self._own_trace: Trace | None = None
        self.observers: list[ObserverFactory] = [] if trace is None or isinstance(trace, str | Path) else [trace]
        """Observers of the purgatories; add to them before `open`."""
        self.latency_ms: Callable[[int, int], int] | None = None
        """Latency of a message from one node to another in ms; set it before `open`."""
        self.disks: dict[int, SimulatedDisk] = {}
        """The simulated disks of brokers, by id; set them before `open`."""

    def bind_verb(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method bound to this cluster. Raises WrongStateError in a forked child."""
        if self._pid != os.getpid():
            raise forked_error(self._pid)
        return MethodType(method, self)

    # -- open and close -------------------------------------------------------------------------

    async def open(self) -> Self:
        """Start all brokers; returns when every one of them accepts clients.

        Raises WrongStateError if it was opened before: create a new cluster.
        """
        if self._was_opened:
            raise WrongStateError("a cluster can be opened only once; create a new one")
        self._was_opened = True
        self._pid = os.getpid()
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def _open(self) -> None:
        scheduler = Scheduler(asyncio.get_running_loop())
        if not scheduler.is_virtual:
            check_threads()
        if self._trace_path is not None:
            from broker_sim.trace import Trace  # noqa: PLC0415 - rarely used

            self._own_trace = Trace(self._trace_path, run_id=self._trace_run_id)
            self.observers.append(self._own_trace)
        for broker_id in self._configs:
            self.listeners.bind(broker_id)
        if self._control_argument is not False:
            self._control = control_server(self._control_argument, self._control_token)
        if self._data is not None:
            self._open_data(self._data)
        drawn_id = uuid_text(self._rng.randbytes(16))
        self._nodes = Nodes(
            scheduler,
            self._configs,
            {broker_id: self.listeners.advertised(broker_id) for broker_id in self._configs},
            cluster_id=self._cluster_id or drawn_id,
            rng=self._rng,
            make_purgatory=PurgatoryFactory(scheduler, self.observers),
            latency_ms=self.latency_ms,
            on_change=self._on_change,
            release=self._release,
            features=self._features,
            memory_limit_bytes=self._memory_limit_bytes,
            data=self._data,
            disks=self.disks,
        )
        for broker_id in self._configs:
            self.listeners.serve(self._nodes.start(broker_id))
        await self._until(lambda: self.nodes.is_ready, "the brokers to start")
        self._nodes.make_topics(self._missing_topics())
        self._credentials = credentials_of(self._security, self.listeners.all, self._rng)
        version = self._make_users()
        await self._until_brokers_have(version, "the brokers to learn of the topics")
        self._is_for_clients = True
        self.listeners.open_serving()
        await self._until_ready("the brokers to accept clients")
        if self._control is not None:
            self._control.serve(self)

    def _open_data(self, data: DataDirectory) -> None:
        data.open()
        if data.restored is None:
            return
        image = data.restored.image
        check_finalized_features(image.features, self._release, self._features, data.path)
        if self._cluster_id not in {None, image.cluster_id}:
            raise ConfigError(
                f"the cluster in {data.path} has the id {image.cluster_id}: leave out cluster_id,"
                " or use another directory"
            )
        if self._seed is not None:
            # Ids that the earlier cluster drew from this seed must not be repeated.
            self._rng.seed(f"{self._seed} {image.version}")

    async def _until_ready(self, what: str) -> None:
        accepts = self.listeners.is_accepting
        await self._until(lambda: self.nodes.is_ready and all(map(accepts, self.nodes.nodes)), what)

    def _add(self, broker_id: int, configs: Mapping[str, GivenValue] | None = None) -> None:
        if broker_id in self.nodes.nodes:
            raise ConfigError(f"broker {broker_id} exists; remove it first, or leave the id out")
        config = self._configs_of(broker_id, configs)
        self.listeners.add(broker_id, self._make_listeners(config))
        try:
            self.nodes.add(broker_id, config, self.listeners.advertised(broker_id))
        except BaseException:
            self.listeners.remove(broker_id)
            raise

    def _first_ids(self) -> Collection[int]:
        return self._configs.keys()

    def _own_topics(self) -> list[CreatableTopic]:
        return self._topics

    def _make_users(self) -> int:
        controller = self.nodes.controller
        for credentials in self._credentials:
            controller.alter_user_scram_credentials([], credentials)
        return controller.image.version

    def _missing_topics(self) -> list[CreatableTopic]:
        """Return the initial topics that the data directory does not have."""
        present = self.nodes.controller.image.topics if self._data is not None else {}
        return [topic for topic in self._topics if topic.name not in present]

    async def close(self) -> None:
        """Stop all brokers and close their ports; does nothing the second time, and in a forked child."""
        if self._pid != os.getpid():
            return
        control, self._control = self._control, None
        if control is not None:
            await control.close()
        nodes, self._nodes = self._nodes, None
        if nodes is not None:
            nodes.shutdown()
        self.listeners.close_all()
        if self._data is not None:
            self._data.close()
        trace, self._own_trace = self._own_trace, None
        if trace is not None:
            trace.close()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _on_change(self) -> None:
        if self._is_for_clients:
            self.listeners.open_serving()
        self.changes.notify()

    async def _stop(self, broker_id: int) -> None:
        stopped = asyncio.Event()
        self.nodes.stop(broker_id, stopped.set)
        await stopped.wait()
        self.listeners.close(broker_id)

    async def _until(self, condition: Callable[[], bool], what: str, limit_s: float | None = None) -> None:
        if limit_s is None:
            if condition():
                return  # computing the limit visits each topic
            limit_s = wait_limit_s(self.nodes.controller.image)
        await self._wait(condition, lambda: f"{what}; look at the cluster's status", limit_s)

    async def _until_changed(
        self, condition: Callable[[], object], describe: Callable[[], str], limit_s: float
    ) -> None:
        with self.watched():
            await self._wait(condition, describe, limit_s)

    async def _wait(self, condition: Callable[[], object], describe: Callable[[], str], limit_s: float) -> None:
        try:
            async with asyncio.timeout(checked_s("timeout_s", limit_s)):
                while not condition():
                    await self.changes.after(self.changes.count)
        except TimeoutError:
            raise ClusterTimeoutError(f"waited {limit_s:g} s for {describe()}") from None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let `changes` count every event in brokers for the duration of the block."""
        self._waiting += 1
        nodes = self.nodes
        nodes.watch(self.changes.notify)
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                nodes.watch(None)

    async def wait_until(self, predicate: Callable[[], object], timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until `predicate()` is true; it is called whenever something changes.

        It may read any state of the cluster, and no other state. Raises ClusterTimeoutError, with what `describe`
        returns, after `timeout_s` seconds.
        """
        await self._until_changed(predicate, lambda: unmet(predicate, self), timeout_s)

    # -- addresses --------------------------------------------------------------------------------

    @property
    def nodes(self) -> Nodes:
        """The nodes; raises WrongStateError before `open` and after `close`."""
        if self._nodes is None:
            raise WrongStateError("the cluster is not running; use it as a context manager, or call open() first")
        return self._nodes

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each broker's first listener, comma-separated. Raises WrongStateError before `open`."""
        return ",".join(address_text(*node.address) for node in self.nodes.nodes.values())

    def bootstrap_servers_of(self, listener: str) -> str:
        """Return `host:port` of each broker's listener of that name. Raises ConfigError for an unknown listener."""
        addresses = self.listeners.addresses_of(listener)
        return ",".join(address_text(*addresses[n]) for n in self.nodes.nodes if n in addresses)

    @property
    def trusted_certificates(self) -> str:
        """The certificates that clients must trust, of all listeners with TLS, as PEM."""
        certificates = [ssl.trusted for each in self.listeners.all for ssl in each.ssl.values()]
        return "".join(dict.fromkeys(certificates))

    def client_config(
        self, client: str, *, user: str | None = None, mechanism: str | None = None, listener: str | None = None
    ) -> dict[str, Any]:
        """Return the configuration of a client: addresses, protocol, mechanism, name and password.

        `client` is "confluent", "aiokafka", "kafka-python" or "java", and decides the names. Defaults: the first
        listener, PLAIN if it is enabled, the only user. If brokers require certificates, it includes one for
        `CN=client`, or for the user. Raises ConfigError for an unknown listener, mechanism or user, WrongStateError
        before `open`, ModuleNotFoundError if a token needs a library that is not installed.
        """
        name = listener or self.listeners.names[0]
        servers = self.bootstrap_servers_of(name)
        protocol, sasl, ssl = self.listeners.find(name)
        login = trust = None
        if sasl is not None:
            login = choose_login(sasl, user, mechanism)
        if ssl is not None:
            own = self.certificates.for_client(user or CLIENT) if ssl.wants_certificate else None
            trust = Trust(ssl.trusted, own)
        return client_config(client, servers, protocol, login, trust)

    @property
    def control_url(self) -> str | None:
        """The address of the control port, None without one."""
        return None if self._control is None else self._control.url

    def address(self, broker_id: int) -> tuple[str, int]:
        """Return host and port of one broker's first listener. Raises UnknownBrokerError."""
        return self.nodes.node(broker_id).address

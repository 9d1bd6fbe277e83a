"""Testcontainers' `KafkaContainer` without a container: a test suite changes one import.

Mirrors `testcontainers.kafka.KafkaContainer` 4.15: one broker with the same defaults. Settings of images, and of
names or disks of a container, have no effect; methods that need a container do not exist.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from broker_sim.cluster.cluster import Cluster
from broker_sim.errors import WrongStateError

if TYPE_CHECKING:
    from broker_sim.config import GivenValue

PREFIX: Final = "KAFKA_"
OF_THE_CONTAINER: Final = re.compile(
    r"(ADVERTISED_)?LISTENERS|LISTENER_SECURITY_PROTOCOL_MAP|INTER_BROKER_LISTENER_NAME"
    r"|(BROKER|NODE)_ID|PROCESS_ROLES|CONTROLLER_\w+|ZOOKEEPER_\w+|LOG_DIRS?|METADATA_LOG_DIR"
    r"|(\w+_)?OPTS|JMX_\w+|LOG4J_\w+|TOOLS_LOG4J_\w+|CLUSTER_ID"
)
"""Matches variables, without their prefix, that place a broker in its container or configure its JVM."""
SEPARATORS: Final = {"_": ".", "__": "_", "___": "-"}
DEFAULTS: Final[dict[str, GivenValue]] = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
}


class KafkaContainer:
    """A cluster of one broker with the methods of testcontainers' class of this name.

    `with KafkaContainer() as kafka:` starts and stops it; clients connect to
    `kafka.get_bootstrap_server()`. `image` and other arguments about a container are accepted without effect. While
    it runs, `cluster` is the `Cluster` behind it, with all its verbs. Thread rule: as
    `Cluster`.
    """

    def __init__(self, image: str = "broker-sim", port: int = 9093, *_others: object, **_more: object) -> None:
        self.image = image
        self.port = port
        self._configs = dict(DEFAULTS)
        self._cluster_id: str | None = None
        self._host_port = 0
        self._cluster: Cluster | None = None

    if not TYPE_CHECKING:  # so that mypy reports missing methods

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"broker_sim.KafkaContainer has no {name!r}: there is no container")

    # -- start and stop -------------------------------------------------------------------------

    def start(self, timeout: float = 30) -> Self:
        """Start the broker; returns when it accepts clients, in milliseconds whatever `timeout` is.

        Raises WrongStateError if it is running already, ConfigError for a variable that is not a Kafka configuration,
        and OSError for a port in use.
        """
        del timeout
        if self._cluster is not None:
            raise WrongStateError("the container is running already")
        self._cluster = Cluster(1, configs=self._configs, ports=[self._host_port], cluster_id=self._cluster_id).open()
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and drop its data; does nothing if it is not running."""
        del force, delete_volume
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- while it is running --------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The running cluster. Raises WrongStateError if it is not running."""
        if self._cluster is None:
            raise WrongStateError("the container is not running; use it with `with`, or call start()")
        return self._cluster

    def get_bootstrap_server(self) -> str:
        """Return `host:port` of the broker."""
        return self.cluster.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of the broker."""
        return self.cluster.address(1)[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of the broker; `port` has no effect."""
        del port
        return self.cluster.address(1)[1]

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return empty stdout and stderr: there is no process."""
        return b"", b""

    # -- before the start -----------------------------------------------------------------------

    def with_env(self, key: str, value: GivenValue) -> Self:
        """Set a configuration as the images do: KAFKA_NUM_PARTITIONS sets num.partitions.

        Variables that place the broker in its container or configure its JVM, and all without the prefix `KAFKA_`,
        have no effect.
        """
        name = key.removeprefix(PREFIX)
        if name != key and not OF_THE_CONTAINER.fullmatch(name):
            config = re.sub("_{1,3}", lambda match: SEPARATORS[match[0]], name).lower()
            self._configs[config] = value
        return self

    def with_envs(self, **variables: GivenValue) -> Self:
        """Call `with_env` for each variable."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Make the broker listen on the port `host` (default: any free port)."""
        del container
        self._host_port = int(host or 0)
        return self

    def with_kraft(self) -> Self:
        """Do nothing: the simulator has no ZooKeeper."""
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster's id, printable ASCII without spaces (default: a random UUID)."""
        self._cluster_id = cluster_id
        return self

    def with_exposed_ports(self, *ports: str | int) -> Self:
        """Do nothing: the broker's port is always reachable."""
        del ports
        return self

    def with_name(self, name: str) -> Self:
        """Do nothing: there is no container to name."""
        del name
        return self

    def with_kwargs(self, **kwargs: Any) -> Self:
        """Do nothing: there is no Docker to pass them to."""
        del kwargs
        return self

    def waiting_for(self, strategy: object) -> Self:
        """Do nothing: the broker accepts clients when `start` returns."""
        del strategy
        return self

    def maybe_emulate_amd64(self) -> Self:
        """Do nothing: there is no image."""
        return self

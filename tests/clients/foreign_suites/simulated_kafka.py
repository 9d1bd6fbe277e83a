"""A pytest plugin for kafka-python's own tests: their broker is a simulated one.

Their fixtures call `KafkaFixture.instance` for a broker and use the attributes of what it returns.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from test.integration.fixtures import KafkaFixture

from broker_sim import Cluster

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
HOST = "127.0.0.1"


class SimulatedKafka(KafkaFixture):
    """One broker with the listener, the mechanism and the user that a test asks for."""

    zookeeper = None

    def __init__(
        self, broker_id, *, transport="PLAINTEXT", sasl_mechanism=None, partitions=4, replicas=1, tmp_dir=None
    ):
        del broker_id, tmp_dir
        self.host, self.transport, self.sasl_mechanism = HOST, transport, sasl_mechanism
        self.partitions, self.replicas = partitions, replicas
        self.child = self
        configs = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0}
        configs |= AUTHORIZER
        users = None
        if sasl_mechanism is not None:
            configs["sasl.enabled.mechanisms"] = sasl_mechanism
            users = {self.broker_user: self.broker_password}
        self._cluster = Cluster(1, security=transport.lower(), users=users, configs=configs)
        self._directory = TemporaryDirectory()
        self.ssl_dir = self._directory.name
        self._cluster.open()
        self.port = self._cluster.address(1)[1]
        if self.ssl_enabled:
            authority = self._cluster.client_config("java")["ssl.truststore.certificates"]
            (Path(self.ssl_dir) / "ca-cert").write_text(authority)

    def start(self):
        """Do nothing: the broker runs already."""

    def get_topic_names(self):
        return [topic.name for topic in self._cluster.status().topics]

    def dump_logs(self):
        """Do nothing: the broker writes its warnings to stderr."""

    def close(self):
        self._cluster.close()
        self._directory.cleanup()


KafkaFixture.instance = SimulatedKafka

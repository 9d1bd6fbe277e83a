"""Effects of transaction.version (KIP-890). Kafka: TransactionVersion, AddPartitionsToTxnManager."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.observations import at_once, untimed
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
    PRODUCE_ADDS,
    PRODUCE_VERIFIES,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.mechanisms import committed as metadata_committed
from broker_sim_integration.scenarios.helpers.observe import produced, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

FEATURE: Final = "transaction.version"
NEWEST: Final = 2
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
UPDATE_VERSION: Final = 2
CONTROLLER: Final = re.compile(r"Local controller \d+")
TIMEOUT_MS: Final = 15_000


def update(
    client: BrokerClient,
    level: int,
    upgrade_type: int,
    *,
    feature: str = FEATURE,
    validate_only: bool = False,
    version: int = UPDATE_VERSION,
) -> Reply[messages.UpdateFeaturesResponse]:
    """Send UpdateFeatures for one feature; return the response."""
    request = messages.UpdateFeaturesRequest
    update = request.FeatureUpdateKey(feature, level)
    if version:
        update.upgrade_type = upgrade_type
    else:
        update.allow_downgrade = upgrade_type != UPGRADE
    message = request(TIMEOUT_MS, [update])
    if validate_only:
        message.validate_only = True
    return client.request(message, version, messages.UpdateFeaturesResponse)


def finalised(client: BrokerClient) -> int | None:
    """Return the feature's finalized level in ApiVersions, or None if it is not finalized."""
    reply = client.request(messages.ApiVersionsRequest("broker-sim-compare", "1"), 4, messages.ApiVersionsResponse)
    levels = [f.max_version_level for f in reply.message.finalized_features if f.name == FEATURE]
    return levels[0] if levels else None


def set_version(cluster: ClusterUnderTest, level: int) -> Reply[messages.UpdateFeaturesResponse]:
    """Set the transaction version of all brokers until the end of the scenario; return the response."""
    controller = cluster.clients.ask(cluster.first)
    cluster.on_close(lambda: update(controller, NEWEST, UPGRADE))
    reply = update(controller, level, SAFE_DOWNGRADE)
    asked = [cluster.clients.ask(broker) for broker in cluster.brokers]
    cluster.wait_until(
        lambda: all((finalised(client) or 0) == level for client in asked),
        f"all brokers have transaction.version {level}",
    )
    return reply


def _unadded(cluster: ClusterUnderTest, level: int) -> Iterator[Observation]:
    reply: Reply[Any]
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic(partitions=2)
    leader = cluster.connect(cluster.first)
    if level != NEWEST:
        reply = set_version(cluster, level)
        yield whole_response("downgrade", cluster, reply, metadata_committed())
    newest = PRODUCE_ADDS if level else PRODUCE_VERIFIES
    for version in (3, 8, 10, 11, *range(12, newest + 1)):
        producer = transactions.producer()
        reply = producer.produce(leader, topic, b"v%d" % version, version=version)
        yield produced(f"not added, v{version}", reply, at_once(), topic=topic)
        yield transactions.seen(f"state, v{version}", transactions.describe(producer))
        reply = producer.again().end(committed=False, version=4)
        yield transactions.seen(f"end, v{version}", reply)
        if not reply.message.error_code:
            transactions.completed(producer)
        yield transactions.seen(f"add, v{version}", producer.add_partitions((topic, 1)))
        reply = producer.produce(leader, topic, b"added", partition=1, version=version)
        yield produced(f"added, v{version}", reply, at_once(), topic=topic, partition=1)
        yield transactions.seen(f"commit, v{version}", producer.end(version=4))
        transactions.completed(producer)
    yield transactions.read("read", leader, topic, partition=1)


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def version_0_verifies_what_was_not_added(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Partitions have to be added first: INVALID_TXN_STATE or TRANSACTION_ABORTABLE, by version of Produce."""
    yield from _unadded(cluster, 0)


@scenario(configs=QUICK_TRANSACTIONS)
def version_0_has_no_producers_of_version_2(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its state records have no fields for them: UNSUPPORTED_VERSION for Produce 12 and 13."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    set_version(cluster, 0)
    for version in (12, PRODUCE_ADDS):
        producer = transactions.producer()
        reply = producer.produce(leader, topic, b"v%d" % version, version=version)
        yield produced(f"v{version}", reply, at_once(), topic=topic)
    yield transactions.read("read", leader, topic)


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def version_1_verifies_what_was_not_added(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Version 1 verifies like version 0; only the records of the transaction state differ."""
    yield from _unadded(cluster, 1)


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def version_2_adds_what_was_not_added(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Since Produce 12 the partition's leader adds the partition to the transaction."""
    yield from _unadded(cluster, 2)


@scenario(configs=QUICK_TRANSACTIONS)
def epochs_of_version_2_grow_with_each_transaction(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """EndTxn 5 returns the next epoch, and the previous epoch is fenced; EndTxn 4 changes no epoch."""
    reply: Reply[Any]
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    for number, (version, committed) in enumerate(((5, True), (5, False), (4, True), (4, False))):
        old = producer.again()
        reply = producer.produce(leader, topic, b"%d" % number)
        yield produced(f"{number}: produce", reply, at_once(), topic=topic)
        reply = producer.end(committed=committed, version=version)
        yield transactions.seen(f"{number}: end v{version}", reply)
        transactions.completed(producer)
        yield transactions.seen(f"{number}: described", transactions.describe(producer))
        reply = old.produce(leader, topic, b"old", sequence=1)
        yield produced(f"{number}: older epoch", reply, at_once(), topic=topic)
        yield transactions.seen(f"{number}: older adds", old.add_partitions((topic, 0)))
        if not old.again().end(committed=False, version=4).message.error_code:
            transactions.completed(producer)
        producer.init()
    yield transactions.read("read", leader, topic)


@scenario(configs=QUICK_TRANSACTIONS)
def an_end_of_nothing_depends_on_the_version(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A commit without partitions is an error; with version 2 an empty transaction can be aborted."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    for version in range(6):
        for committed in (True, False):
            step = f"{'commit' if committed else 'abort'} v{version}"
            producer = transactions.producer()
            yield transactions.seen(step, producer.end(committed=committed, version=version))
            transactions.wait_for_state(producer, "Empty", "CompleteAbort", "CompleteCommit")
            yield transactions.seen(f"{step}, after", transactions.describe(producer))
            if version in (4, 5):
                reply = producer.produce(leader, topic, b"%s" % step.encode())
                yield produced(f"{step}, next", reply, at_once(), topic=topic)
                yield transactions.seen(f"{step}, end", producer.end(version=version))
                transactions.completed(producer)


@scenario(topology="no topic", configs=QUICK_TRANSACTIONS)
def the_version_of_transactions_is_a_feature(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UpdateFeatures lowers and raises it; ApiVersions returns the finalized level."""
    client = cluster.connect(cluster.first)
    asked = cluster.clients.ask(cluster.first)
    cluster.on_close(lambda: update(asked, NEWEST, UPGRADE))

    def changed(step: str, level: int, upgrade_type: int, **options: Any) -> Observation:
        reply = update(client, level, upgrade_type, **options)
        error_code = reply.message.error_code or max((result.error_code for result in reply.message.results), default=0)
        if not error_code and not options.get("validate_only"):
            cluster.wait_until(lambda: (finalised(client) or 0) == level, f"transaction.version is {level}")
        text = reply.message.error_message
        reply.message.error_message = text and CONTROLLER.sub("the controller", text)
        return whole_response(step, cluster, reply, untimed("the controller writes a record"))

    yield changed("3", 3, UPGRADE)
    yield changed("-1", -1, SAFE_DOWNGRADE)
    yield changed("down, said to be up", 1, UPGRADE)
    yield changed("validated", 1, SAFE_DOWNGRADE, validate_only=True)
    yield changed("1", 1, SAFE_DOWNGRADE)
    yield changed("1 again", 1, UPGRADE)
    yield changed("up, said to be down", 2, SAFE_DOWNGRADE)
    yield changed("0", 0, UNSAFE_DOWNGRADE)
    yield changed("unknown type", 2, 0)
    yield changed("unknown feature", 1, UPGRADE, feature="no.such.feature")
    yield changed("2 by version 0", 2, UPGRADE, version=0)
    yield changed("1 by version 1", 1, SAFE_DOWNGRADE, version=1)
    yield changed("2", 2, UPGRADE)

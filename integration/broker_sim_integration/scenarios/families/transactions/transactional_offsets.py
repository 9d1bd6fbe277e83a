"""Offsets that are committed in transactions. Kafka: OffsetMetadataManager, GroupCoordinatorService."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.group.records import decode_record
from broker_sim.protocol.message import to_dict
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, parse_header, split_batches
from broker_sim.protocol.records import iter_records
from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    committed_of_groups,
    delete_groups,
    delete_offsets,
    describe_groups,
)
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
    TXN_OFFSETS_ADD,
    TXN_OFFSETS_VERIFY,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.group_configs import LIMITED_GROUPS
from broker_sim_integration.scenarios.helpers.groups import OFFSETS_TOPIC, form, groups_on, partition_of, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

LIMITED_TRANSACTIONS: Final = LIMITED_GROUPS | QUICK_TRANSACTIONS
"""Ten bytes of metadata per offset, and early expiration of offsets."""
BY_NAME: Final = 12
"""Last version of Fetch with topic names."""
CHECK_MS: Final = 500
MOVES: Final = untimed("once the commit and the marker are replicated")


def _both_views(
    group: GroupUnderTest, step: str, asked: Mapping[Topic, Sequence[int]] | None = None
) -> Iterator[Observation]:
    """Fetch the group's offsets as they are, and as a transactional consumer requests them."""
    for stable in (False, True):
        reply = committed_of_groups(group.tool, {group.name: asked}, require_stable=stable)
        yield group.seen(f"{step}, stable {stable}", reply, MOVES)


def _begun(transactions: TransactionsUnderTest, group: GroupUnderTest, *offsets: Offset) -> TransactionalProducer:
    """Return a producer with an open transaction in which it has committed these offsets."""
    producer = transactions.producer()
    reply = producer.commit_offsets(group.tool, group.name, *offsets)
    codes = [part.error_code for named in reply.message.topics for part in named.partitions]
    assert not any(codes), reply.message
    return producer


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def offsets_of_a_transaction_count_once_it_is_committed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Until then readers get the older offsets, or UNSTABLE_OFFSET_COMMIT if they require stable ones."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first], partitions=3)
    commit(group.tool, group.name, Offset(topic, 0, 1), Offset(topic, 2, 2))
    asked = {topic: [0, 1, 2]}
    producer = transactions.producer()
    yield transactions.seen("add", producer.add_offsets(group.name))
    offsets = Offset(topic, 0, 10, "later", 0), Offset(topic, 1, 11)
    reply = producer.commit_offsets(group.tool, group.name, *offsets)
    yield transactions.seen("commit offsets", reply)
    yield from _both_views(group, "open", asked)
    yield from _both_views(group, "open, all")
    yield group.seen("group", describe_groups(group.tool, group.name))
    transactions.ended(producer)
    yield from _both_views(group, "committed", asked)
    yield from _both_views(group, "committed, all")


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def offsets_of_an_aborted_transaction_never_count(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The abort drops them, and the previously committed offsets are stable again."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first], partitions=2)
    commit(group.tool, group.name, Offset(topic, 0, 1))
    producer = _begun(transactions, group, Offset(topic, 0, 10), Offset(topic, 1, 11))
    yield from _both_views(group, "open", {topic: [0, 1]})
    transactions.ended(producer, committed=False)
    yield from _both_views(group, "aborted", {topic: [0, 1]})
    yield from _both_views(group, "aborted, all")


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def every_version_asks_for_the_groups_partition_in_its_way(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Up to TxnOffsetCommit 4 it has to be added before, version 5 adds it; each version has its own error."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first])
    for version in range(TXN_OFFSETS_ADD + 1):
        producer = transactions.producer()
        for step in ("not added", "added"):
            reply = producer.commit_offsets(group.tool, group.name, Offset(topic, 0, version), version=version)
            yield transactions.seen(f"{step}, v{version}", reply)
            if step == "not added":
                add = producer.add_offsets(group.name, version=min(version, 4))
                yield transactions.seen(f"add, v{version}", add)
        transactions.ended(producer)
        yield from _both_views(group, f"v{version}", {topic: [0]})


@scenario(topology="2 groups", configs=QUICK_TRANSACTIONS)
def who_may_commit_in_a_transaction_depends_on_the_member(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID; any producer may commit without a member."""
    transactions = TransactionsUnderTest(cluster)
    group, static = groups_on(cluster, cluster.first, 2)
    topic = transactions.topic([cluster.first])
    ((member,),) = form([group])
    ((instance,),) = form([static], static=True)
    producer = transactions.producer()

    def attempts(step: str, version: int) -> Iterator[Observation]:
        id_, generation = member.member_id, member.generation
        for who, as_id, as_generation in (
            ("nobody", "", -1),
            ("member", id_, generation),
            ("older", id_, generation - 1),
            ("newer", id_, generation + 1),
            ("stranger", "nobody", generation),
            ("nobody, generation", "", generation),
            ("member, no generation", id_, -1),
        ):
            reply = producer.commit_offsets(
                group.tool, group.name, Offset(topic, 0, 1), member_id=as_id, generation=as_generation, version=version
            )
            yield transactions.seen(f"{step}: {who}", reply)

    yield from attempts("stable v5", TXN_OFFSETS_ADD)
    yield from attempts("stable v4", TXN_OFFSETS_VERIFY)
    for who, as_instance in (("instance", "instance 1"), ("another", "instance 2")):
        reply = producer.commit_offsets(
            static.tool,
            static.name,
            Offset(topic, 0, 1),
            member_id=instance.member_id,
            generation=instance.generation,
            instance_id=as_instance,
        )
        yield transactions.seen(f"static: {who}", reply)
    reply = producer.commit_offsets(
        static.tool,
        static.name,
        Offset(topic, 0, 1),
        member_id="older id",
        generation=instance.generation,
        instance_id="instance 1",
    )
    yield transactions.seen("static: older id", reply)
    member.leave()
    yield from attempts("left", TXN_OFFSETS_ADD)


@scenario(topology="a group by the new protocol", configs=QUICK_TRANSACTIONS)
def members_of_the_new_protocol_commit_in_their_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """STALE_MEMBER_EPOCH is returned as ILLEGAL_GENERATION, the code that transactional clients know."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first])
    member = group.consumer("one", topics=[topic.name])
    member.join()
    producer = transactions.producer()
    for version in (3, TXN_OFFSETS_VERIFY, TXN_OFFSETS_ADD):
        producer.add_offsets(group.name)
        for who, member_id, epoch in (
            ("member", member.member_id, member.epoch),
            ("older", member.member_id, member.epoch - 1),
            ("newer", member.member_id, member.epoch + 1),
            ("stranger", "nobody", member.epoch),
            ("nobody", "", -1),
        ):
            reply = producer.commit_offsets(
                group.tool, group.name, Offset(topic, 0, 1), member_id=member_id, generation=epoch, version=version
            )
            yield transactions.seen(f"{who} v{version}", reply)


@scenario(topology="a group", configs=LIMITED_TRANSACTIONS)
def offsets_that_cannot_be_committed_fail_alone(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown partitions, too much metadata: the other offsets are part of the transaction."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic, unknown = transactions.topic([cluster.first], partitions=3), cluster.topics.unknown()
    producer = transactions.producer()
    reply = producer.commit_offsets(group.tool, group.name, Offset(unknown, 0, 1))
    yield transactions.seen("unknown only", reply)
    yield transactions.seen("state", transactions.describe(producer))
    yield transactions.seen("nothing", producer.commit_offsets(group.tool, group.name))
    reply = producer.commit_offsets(group.tool, group.name, Offset(topic, 1, 1, "eleven byte"))
    yield transactions.seen("too much", reply)
    offsets = (
        Offset(topic, 0, 5, "ten bytes."),
        Offset(unknown, 0, 6),
        Offset(topic, 1, 7, "eleven byte"),
        Offset(topic, 9, 8),
        Offset(topic, 2, -5, None),
    )
    yield transactions.seen("some", producer.commit_offsets(group.tool, group.name, *offsets))
    for version in range(6):
        reply = producer.commit_offsets(group.tool, "", Offset(topic, 0, 1), version=version)
        yield transactions.seen(f"empty group v{version}", reply)
    transactions.ended(producer)
    yield from _both_views(group, "committed", {topic: [0, 1, 2]})


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def the_last_commit_counts_in_a_transaction_or_outside(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A plain commit after the transactional one outlasts its marker, an earlier one does not."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first], partitions=3)
    asked = {topic: [0, 1, 2]}
    commit(group.tool, group.name, Offset(topic, 0, 1))
    producer = _begun(transactions, group, Offset(topic, 0, 10), Offset(topic, 1, 11))
    producer.commit_offsets(group.tool, group.name, Offset(topic, 1, 111))
    other = _begun(transactions, group, Offset(topic, 0, 20), Offset(topic, 2, 22))
    commit(group.tool, group.name, Offset(topic, 1, 2), Offset(topic, 2, 3))
    yield from _both_views(group, "both open", asked)
    transactions.ended(other)
    yield from _both_views(group, "one open", asked)
    transactions.ended(producer)
    yield from _both_views(group, "none open", asked)


@scenario(topology="2 groups", configs=QUICK_TRANSACTIONS)
def deleted_offsets_are_dropped_from_transactions_too(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OffsetDelete and DeleteGroups drop pending offsets; the commit then has no effect."""
    transactions = TransactionsUnderTest(cluster)
    group, deleted = groups_on(cluster, cluster.first, 2)
    topic = transactions.topic([cluster.first], partitions=2)
    producer = _begun(transactions, group, Offset(topic, 0, 1), Offset(topic, 1, 2))
    reply = producer.commit_offsets(deleted.tool, deleted.name, Offset(topic, 0, 3))
    yield transactions.seen("the other group", reply)
    yield group.seen("delete", delete_offsets(group.tool, group.name, {topic.name: [0]}))
    yield from _both_views(group, "deleted", {topic: [0, 1]})
    yield deleted.seen("delete group", delete_groups(deleted.tool, deleted.name))
    yield from _both_views(deleted, "group deleted", {topic: [0]})
    transactions.ended(producer)
    yield from _both_views(group, "committed", {topic: [0, 1]})
    yield from _both_views(deleted, "group, committed", {topic: [0]})
    yield group.seen("group", describe_groups(group.tool, group.name))
    yield deleted.seen("deleted group", describe_groups(deleted.tool, deleted.name))


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def a_subscribed_topic_keeps_its_pending_offsets(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_SUBSCRIBED_TO_TOPIC, and NON_EMPTY_GROUP: the transaction continues."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first])
    form([group], protocols={"range": subscription([topic.name])})
    producer = _begun(transactions, group, Offset(topic, 0, 5))
    yield group.seen("delete", delete_offsets(group.tool, group.name, {topic.name: [0]}))
    yield group.seen("delete group", delete_groups(group.tool, group.name))
    transactions.ended(producer)
    yield from _both_views(group, "committed", {topic: [0]})


@scenario(topology="2 groups", configs=LIMITED_TRANSACTIONS)
def a_group_with_an_open_transaction_does_not_expire(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A group with only pending offsets remains as long as these; an empty group is deleted."""
    transactions = TransactionsUnderTest(cluster)
    kept, gone = groups_on(cluster, cluster.first, 2)
    topic = transactions.topic([cluster.first])
    producer = _begun(transactions, kept, Offset(topic, 0, 5))

    def is_gone(group: GroupUnderTest) -> bool:
        return group.state() == "Dead"

    commit(gone.tool, gone.name, Offset(topic, 0, 1))
    delete_offsets(gone.tool, gone.name, {topic.name: [0]})
    cluster.wait_until(lambda: is_gone(gone), "the empty group is gone")
    cluster.wait(2 * CHECK_MS)
    yield concluded("open", state=kept.state())
    yield from _both_views(kept, "open", {topic: [0]})
    transactions.ended(producer, committed=False)
    cluster.wait_until(lambda: is_gone(kept), "the other group is gone")
    yield kept.seen("gone", committed(kept.tool, kept.name))


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def offsets_and_markers_are_written_as_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The batches in `__consumer_offsets`: one per commit, transactional or not, and a marker."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first], partitions=2)
    count = len(cluster.metadata.describe_all(OFFSETS_TOPIC))
    partition = partition_of(group.name, count)
    offsets_topic = Topic(OFFSETS_TOPIC, bytes(16), ())
    end = group.tool.list_offset(offsets_topic, partition=partition)
    began = end.message.topics[0].partitions[0].offset
    commit(group.tool, group.name, Offset(topic, 0, 1, "plain"))
    producer = _begun(transactions, group, Offset(topic, 0, 2, "kept", 0), Offset(topic, 1, 3))
    transactions.ended(producer)
    delete_offsets(group.tool, group.name, {topic.name: [0]})
    reply = group.tool.fetch(offsets_topic, began, partition=partition, max_wait_ms=0, version=BY_NAME)
    records: Any = reply.message.responses[0].partitions[0].records or b""
    for number, batch in enumerate(split_batches(records)):
        yield concluded(f"batch {number}", **_written(batch, group))


def _written(batch: memoryview, group: GroupUnderTest) -> dict[str, Any]:
    """Return a batch's header and decoded records, without times and ids."""
    header = parse_header(batch)
    written: dict[str, Any] = {
        "codec": header.codec.name,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "base_sequence": header.base_sequence,
        "producer": header.producer_id != NO_PRODUCER_ID,
        "producer_epoch": header.producer_epoch,
    }
    for number, record in enumerate(iter_records(batch)):
        key, value = record.key or b"", record.value
        if header.is_control:
            written[f"marker {number}"] = [key.hex(), len(value or b"")]
            continue
        decoded = decode_record(key, value)
        fields = None if decoded.value is None else to_dict(decoded.value)
        if fields is not None:
            fields |= {name: "time" for name in fields if name.endswith("_timestamp")}
            fields["topic_id"] = "given" if any(fields["topic_id"]) else "none"
        written[f"key {number}"] = group.named(str(to_dict(decoded.key)))
        written[f"value {number}"] = [fields and str(fields), decoded.value_version]
    return written

"""Committed offsets: accepted commits, their content and their retention. Kafka: OffsetMetadataManager."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import split_batches
from broker_sim.protocol.records import iter_records
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.admin_requests import TOPIC, describe_configs
from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    committed_of_groups,
    delete_groups,
    delete_offsets,
    start_commit,
)
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import (
    COMMIT_TIMEOUT_MS,
    LIMITED_GROUPS,
    QUICK_GROUPS,
    SLOW_COMMITS,
)
from broker_sim_integration.scenarios.helpers.groups import OFFSETS_TOPIC, form, groups_on, partition_of, ready_group
from broker_sim_integration.scenarios.helpers.mechanisms import FETCH_WAIT_MS, NEXT_FETCH
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

COMMIT_VERSIONS: Final = range(2, 11)
FETCH_VERSIONS: Final = range(1, 11)
FETCHES_ALL_SINCE: Final = 2
BATCHED_SINCE: Final = 8
RETENTION_MS: Final = 300
RETENTION_VERSION: Final = 4
PAUSED_AFTER_MS: Final = 50
TIMESTAMP_BYTES: Final = 8
CLIENT_HOST: Final = re.compile(rb"\x00[\x08-\x10]/\d+\.\d+\.\d+\.\d+")
"""A client host in a record, with its length; a client of brokers in containers has another address."""


@scenario(topology="a group, 2 partitions x 1 replica", configs=QUICK_GROUPS)
def every_version_of_offsets_is_served(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OffsetCommit 2 to 10 and OffsetFetch 1 to 10; leader epochs since versions 6 and 5."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first], partitions=2)
    for version in COMMIT_VERSIONS:
        offset = Offset(topic, 0, version, f"v{version}", leader_epoch=0)
        reply = commit(group.tool, group.name, offset, version=version)
        yield group.seen(f"commit v{version}", reply)
        yield group.seen(f"after v{version}", committed(group.tool, group.name, {topic: [0]}))
    for version in FETCH_VERSIONS:
        asked = {topic: [0, 1]}
        reply_ = committed(group.tool, group.name, asked, version=version)
        yield group.seen(f"fetch v{version}", reply_)
        if version >= FETCHES_ALL_SINCE:
            everything = committed(group.tool, group.name, version=version)
            yield group.seen(f"fetch all v{version}", everything)


@scenario(topology="2 groups, 2 topics", configs=QUICK_GROUPS)
def offsets_of_several_groups_are_fetched_together(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each group has its own result; a partition without a commit has offset -1 and no error."""
    one, other, none = groups_on(cluster, cluster.first, 3)
    first = cluster.topics.create([cluster.first], partitions=2)
    second = cluster.topics.create([cluster.first])
    commit(one.tool, one.name, Offset(first, 0, 10), Offset(first, 1, 11), Offset(second, 0, 12))
    commit(other.tool, other.name, Offset(second, 0, 20, None))
    asked: dict[str, Any] = {one.name: None, other.name: {first: [0], second: [0, 1]}, none.name: None}
    names = {one.name: "one", other.name: "other", none.name: "none"}
    for version in range(BATCHED_SINCE, 11):
        for stable in (False, True):
            reply = committed_of_groups(one.tool, asked, version=version, require_stable=stable)
            found = {
                names[group.group_id]: sorted(
                    [
                        [part.partition_index, part.committed_offset, part.error_code]
                        for topic in group.topics
                        for part in topic.partitions
                    ]
                )
                for group in reply.message.groups
            }
            yield concluded(f"v{version}, stable {stable}", groups=found)


@scenario(topology="a group", configs=QUICK_GROUPS)
def topics_that_are_unknown_are_not_committed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID; the other partitions of the request are committed."""
    group = ready_group(cluster)
    topic, unknown = cluster.topics.create([cluster.first]), cluster.topics.unknown()
    offsets = Offset(topic, 0, 1), Offset(topic, 7, 2), Offset(unknown, 0, 3)
    for version in (9, 10):
        reply = commit(group.tool, group.name, *offsets, version=version)
        yield group.seen(f"commit v{version}", reply)
        asked = {topic: [0, 7], unknown: [0]}
        fetched = committed(group.tool, group.name, asked, version=version)
        yield group.seen(f"fetch v{version}", fetched)
    yield group.seen("nothing", commit(group.tool, group.name))
    yield group.seen("negative", commit(group.tool, group.name, Offset(topic, 0, -5)))
    yield group.seen("all", committed(group.tool, group.name))


@scenario(topology="a group", configs=QUICK_GROUPS)
def who_may_commit_depends_on_the_state(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS, or a successful commit, by the group's state."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    offset = Offset(topic, 0, 1)

    def attempts(state: str, member_id: str, generation: int) -> Iterator[Observation]:
        for who, as_id, as_generation in (
            ("nobody", "", -1),
            ("member", member_id, generation),
            ("older", member_id, generation - 1),
            ("newer", member_id, generation + 1),
            ("stranger", "nobody", generation),
            ("nobody, generation", "", generation),
            ("member, no generation", member_id, -1),
        ):
            reply = start_commit(group.tool, group.name, offset, member_id=as_id, generation=as_generation).result()
            code = reply.message.topics[0].partitions[0].error_code
            yield (
                group.seen(f"{state}: {who}", reply)
                if who == "member"
                else concluded(f"{state}: {who}", error_code=code)
            )

    yield from attempts("no group", "gone", 1)
    member = group.with_id()
    parked = group.parked_join(member)
    yield from attempts("joining", member.member_id, 0)
    member.joined(parked)
    yield from attempts("completing", member.member_id, 1)
    member.sync({member.member_id: b"assigned"})
    yield from attempts("stable", member.member_id, 1)
    other = group.with_id()
    parked = group.parked_join(other)
    yield from attempts("preparing", member.member_id, 1)
    member.leave()
    other.joined(parked)
    other.leave()
    yield from attempts("empty", member.member_id, 2)


@scenario(topology="a group", configs=LIMITED_GROUPS)
def metadata_of_an_offset_has_a_limit(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OFFSET_METADATA_TOO_LARGE for that partition alone; the limit counts characters, not bytes."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first], partitions=4)
    texts = "ten bytes.", "eleven byte", "äöüßäöüßäö", None
    offsets = (Offset(topic, index, 1, text) for index, text in enumerate(texts))
    yield group.seen("commit", commit(group.tool, group.name, *offsets))
    yield group.seen("kept", committed(group.tool, group.name, {topic: [0, 1, 2, 3]}))


@scenario(topology="2 groups", configs=QUICK_GROUPS)
def offsets_are_deleted_of_topics_without_a_subscriber(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_SUBSCRIBED_TO_TOPIC for a member's topic; errors of unknown partitions take precedence."""
    used, simple = groups_on(cluster, cluster.first, 2)
    read, other = cluster.topics.create([cluster.first]), cluster.topics.create([cluster.first])
    ((member,),) = form([used], protocols={"range": subscription([read.name])})
    member.commit(Offset(read, 0, 1), Offset(other, 0, 2))
    partitions = {read.name: [0, 9], other.name: [0], cluster.topics.unknown().name: [0]}
    yield used.seen("used", delete_offsets(used.tool, used.name, partitions))
    yield used.seen("left", committed(used.tool, used.name))
    commit(simple.tool, simple.name, Offset(read, 0, 1))
    both = {read.name: [0], other.name: [0]}
    yield simple.seen("simple", delete_offsets(simple.tool, simple.name, both))
    yield simple.seen("nothing left", committed(simple.tool, simple.name))
    yield simple.seen("the group", delete_groups(simple.tool, simple.name))


@scenario(topology="a group", configs=QUICK_GROUPS)
def a_member_of_another_type_protects_all_offsets(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OffsetDelete returns NON_EMPTY_GROUP if the members are not consumers."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    ((member,),) = form([group], protocol_type="connect", protocols={"other": b"any"})
    member.commit(Offset(topic, 0, 1))
    deleted = delete_offsets(group.tool, group.name, {topic.name: [0]})
    yield group.seen("used", deleted)
    member.leave()
    deleted = delete_offsets(group.tool, group.name, {topic.name: [0]})
    yield group.seen("empty", deleted)


@scenario(topology="a group, 2 topics", configs=QUICK_GROUPS)
def a_deleted_topic_takes_its_offsets_along(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Only the offsets of the other topic remain."""
    group = ready_group(cluster)
    deleted = cluster.topics.create([cluster.first])
    kept = cluster.topics.create([cluster.first])
    commit(group.tool, group.name, Offset(deleted, 0, 1), Offset(kept, 0, 2))
    cluster.topics.delete(deleted)

    def gone() -> bool:
        reply = committed(group.tool, group.name, version=9)
        return len(reply.message.groups[0].topics) == 1

    cluster.wait_until(gone, "the offsets are deleted")
    yield group.seen("left", committed(group.tool, group.name, version=9))


@scenario(topology="2 groups", configs=LIMITED_GROUPS)
def offsets_expire_and_empty_groups_with_them(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A commit of version 4 may contain its retention time; a group is deleted with its last offset."""
    going, staying = groups_on(cluster, cluster.first, 2)
    topic = cluster.topics.create([cluster.first], partitions=2)
    for group, offsets in ((going, [0]), (staying, [0, 1])):
        for index in offsets:
            keeps = index == 1
            yield group.seen(f"{len(offsets)} offsets: commit {index}", _commit_for(group, topic, index, keeps=keeps))

    def expired(group: GroupUnderTest, left: int) -> bool:
        topics = committed(group.tool, group.name).message.groups[0].topics
        return sum(len(found.partitions) for found in topics) == left

    cluster.wait_until(partial(expired, going, 0), "the only offset has expired")
    cluster.wait_until(partial(expired, staying, 1), "one of two offsets has expired")
    yield staying.seen("kept", committed(staying.tool, staying.name))
    cluster.wait_until(lambda: going.state() == "Dead", "the group has gone")
    yield concluded("states", going=going.state(), staying=staying.state())


def _commit_for(
    group: GroupUnderTest, topic: Topic, partition: int, *, keeps: bool
) -> Reply[messages.OffsetCommitResponse]:
    """Commit an offset with the short retention time, or with the broker's own if `keeps`."""
    request = messages.OffsetCommitRequest
    named = request.OffsetCommitRequestTopic(
        name=topic.name,
        partitions=[
            request.OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata="")
        ],
    )
    message = request(
        group_id=group.name,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=-1 if keeps else RETENTION_MS,
        topics=[named],
    )
    return group.tool.request(message, RETENTION_VERSION, messages.OffsetCommitResponse)


@scenario(topology="30 groups", configs=SLOW_COMMITS, needs={Fault.PAUSE})
def commits_wait_for_all_replicas(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty commits time out while a follower is paused, and become visible later; then one succeeds."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    topic = cluster.topics.create([cluster.first])
    for group in groups:
        commit(group.tool, group.name, Offset(topic, 0, 1))
    cluster.faults.pause(cluster.third)
    parked = []
    for group in groups:
        parked.append(start_commit(group.tool, group.name, Offset(topic, 0, 2)))
        cluster.wait(PAUSED_AFTER_MS / 5)
    for attempt, (group, pending) in enumerate(zip(groups, parked, strict=True), 1):
        due = at_timeout(COMMIT_TIMEOUT_MS)
        yield group.seen("timed out", pending.result(), due, attempt=attempt)
    group = groups[0]
    yield group.seen("not visible", committed(group.tool, group.name))
    pending = start_commit(group.tool, group.name, Offset(topic, 0, 3))
    cluster.wait(PAUSED_AFTER_MS)
    resumed = cluster.faults.resume(cluster.third)
    reply = pending.result()
    due = after(reply, resumed, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH)
    yield group.seen("with all replicas", reply, due)
    yield group.seen("visible", committed(group.tool, group.name))
    other = groups[1]
    cluster.wait_until(partial(_offset_is, other, 2), "the commit that timed out is visible")
    yield other.seen("visible later", committed(other.tool, other.name))


def _offset_is(group: GroupUnderTest, wanted: int) -> bool:
    topics = committed(group.tool, group.name).message.groups[0].topics
    return topics[0].partitions[0].committed_offset == wanted


@scenario(topology="the offsets topic", configs=QUICK_GROUPS)
def the_offsets_topic_is_internal_and_compacted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It has the configured number of partitions, three replicas, and its own topic configuration."""
    group = ready_group(cluster)
    found = cluster.metadata.describe_all(OFFSETS_TOPIC)
    counts = sorted({len(partition.replicas) for partition in found.values()})
    yield concluded("partitions", count=len(found), replicas=counts)
    keys = (TOPIC, OFFSETS_TOPIC, None)
    reply = describe_configs(group.tool, keys)
    own = sorted(
        [config.name, config.value] for config in reply.message.results[0].configs if config.config_source == 1
    )
    yield concluded("configurations", own=own)


@scenario(topology="a group", configs=QUICK_GROUPS)
def the_records_of_a_group_are_kafkas_byte_for_byte(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Keys and values of member records, offset records and tombstones, without times and ids."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    partition = partition_of(group.name, len(cluster.metadata.describe_all(OFFSETS_TOPIC)))
    log = Topic(OFFSETS_TOPIC, bytes(16), ((cluster.first,),))
    reader = cluster.connect(cluster.first)
    latest = reader.list_offset(log, partition=partition)
    start = latest.message.topics[0].partitions[0].offset
    ((member,),) = form([group], static=True)
    member.commit(Offset(topic, 0, 5, "text", leader_epoch=3))
    member.leave()
    commit(group.tool, group.name, Offset(topic, 0, 6, None))
    delete_groups(group.tool, group.name)
    fetched = reader.fetch(log, start, partition=partition, version=12)
    records: Any = fetched.message.responses[0].partitions[0].records or b""
    number = 0
    for batch in split_batches(records):
        for record in iter_records(batch):
            key = group.named((record.key or b"").decode("latin-1"))
            if "the group" not in key:
                continue
            number += 1
            value = record.value
            yield concluded(
                f"record {number}", key=_escaped(key), value=None if value is None else _masked(group, topic, value)
            )


def _masked(group: GroupUnderTest, topic: Topic, value: bytes) -> str:
    """Return a value with names instead of ids, and dots instead of bytes that look like a current time in ms."""
    data = value.replace(topic.topic_id, b"the topic's id")
    data = CLIENT_HOST.sub(b"the client's host", data)
    index = 0
    while index + TIMESTAMP_BYTES <= len(data):
        if data[index : index + 3] == b"\x00\x00\x01" and data[index + 3] >= 0x80:
            data = data[:index] + b"." * TIMESTAMP_BYTES + data[index + TIMESTAMP_BYTES :]
            index += TIMESTAMP_BYTES
        else:
            index += 1
    return _escaped(group.named(data.decode("latin-1")))


def _escaped(text: str) -> str:
    return text.encode("latin-1").decode("ascii", errors="backslashreplace")

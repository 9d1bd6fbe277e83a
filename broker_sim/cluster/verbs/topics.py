"""Verbs on topics, their records, and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cluster.verbs.base import WAIT_LIMIT_S, BaseVerbs
from broker_sim.control.verb import verb, waiting_verb
from broker_sim.protocol.special_values import BROKER_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from broker_sim.cluster.records import TopicRecord, TopicRecords
    from broker_sim.cluster.status.cluster_status import TopicStatus
    from broker_sim.config import GivenValue


class TopicVerbs(BaseVerbs):
    """The verbs on topics."""

    @waiting_verb(path="/topics")
    async def create_topic(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, GivenValue] | None = None,
        *,
        assignments: Mapping[int, list[int]] | None = None,
    ) -> TopicStatus:
        """Create a topic; returns when every running broker that can be reached has it.

        -1 is the brokers' default (`num.partitions`, `default.replication.factor`).
        `assignments` are instead the brokers of each partition, the preferred leader first.
        """
        from broker_sim.cluster.status.cluster_status import topic_status  # noqa: PLC0415 - see `Verbs`
        from broker_sim.config import to_texts  # noqa: PLC0415 - see `Verbs`
        from broker_sim.controller import CreatableTopic  # noqa: PLC0415 - see `Verbs`

        topic = CreatableTopic(
            name, partitions, replication_factor, tuple((assignments or {}).items()), to_texts(configs or {})
        )
        version = self.nodes.make_topics([topic])
        await self._until_brokers_have(version, f"the brokers to learn of topic {name}")
        return topic_status(self.nodes, name)

    @waiting_verb("DELETE", "/topics/{name}")
    async def delete_topic(self, name: str) -> None:
        """Delete a topic; returns when every running broker that can be reached has removed it."""
        version = self.nodes.delete_topic(name)
        await self._until_brokers_have(version, f"the brokers to forget topic {name}")

    @waiting_verb()
    async def transfer_leadership(self, topic: str, partition: int, to: int) -> None:
        """Make another in-sync replica the leader; returns when it leads.

        The leader epoch rises by one, as with every election. Does nothing if it leads already.
        """
        version = self.nodes.transfer_leadership(topic, partition, to)
        await self._until_brokers_have(version, f"broker {to} to lead {topic}-{partition}")

    @waiting_verb(path="/topics/{topic}/records")
    async def produce(
        self,
        topic: str,
        value: str | bytes | None,
        *,
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] | None = None,
        timestamp_ms: int | None = None,
    ) -> TopicRecord:
        """Append one record as a producer with acks=all does; returns it with its offset.

        The default `partition` is chosen by the key, as Kafka's default partitioner does; without a key it is 0.
        `headers` are a mapping, or pairs if names repeat; `timestamp_ms` is the record's time in ms since the epoch
        (default: now). Injected faults do not hit the append. Raises ApiError with the error that a producer would get,
        ClusterTimeoutError if the leader does not answer.
        """
        from broker_sim.cluster.records import append_record  # noqa: PLC0415 - see `Verbs`

        return await append_record(
            self.nodes, topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )

    @waiting_verb(path="/topics/{topic}/records/many")
    async def produce_many(self, topic: str, records: Iterable[Mapping[str, Any]] | str | Path) -> TopicRecords:
        """Append many records in batches; returns them with their offsets.

        `records` are mappings with `value` and, where needed, `key`, `headers`, `timestamp_ms` and `partition`, or the
        path of a file with one such JSON object per line, as `records` shows them. A value that is neither text,
        null nor `{"base64": ...}` is written as JSON text. If a batch is refused, the batches before it stay. Raises
        as `produce`, and ValueError with the number of a bad record.
        """
        from broker_sim.cluster.records import append_records  # noqa: PLC0415 - see `Verbs`

        return await append_records(self.nodes, topic, records)

    @verb("GET", "/topics/{topic}/records")
    def records(self, topic: str) -> TopicRecords:
        """Return the records that read_committed consumers can read now, partition by partition.

        Reads the leaders' logs without a request, so injected faults and paused brokers have no effect.
        Raises UnknownPartitionError, WrongStateError for a partition without a live leader.
        """
        from broker_sim.cluster.records import readable_records  # noqa: PLC0415 - see `Verbs`

        return readable_records(self.nodes, topic)


class GroupVerbs(BaseVerbs):
    """The verbs on groups of consumers."""

    @waiting_verb(path="/groups/{group_id}/rebalance")
    async def rebalance(self, group_id: str, *, member_id: str | None = None) -> None:
        """Start a rebalance of a group of any type; returns when its coordinator has started it.

        Members learn of it with their next heartbeats. Partitions are assigned anew; those that stay with their members
        are revoked only if their protocol revokes all. With `member_id` that member is removed first, as if its session
        had timed out; it joins again when it learns of that. Raises LookupError for an unknown group or
        member, WrongStateError if its coordinator is not running, ApiError for a group without members.
        """
        import asyncio  # noqa: PLC0415 - see `Verbs`

        from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`

        group = groups_status(self.nodes).of(group_id)
        if member_id is not None and member_id not in {member.id for member in group.members}:
            raise LookupError(f"group {group_id} has no member {member_id}")
        node = self.nodes.running(group.coordinator)
        assert node.process is not None
        assert node.broker is not None
        begun: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        if member_id is not None:
            node.process.deliver(node.broker.remove_member, group_id, member_id)
            begun.set_result(None)
        else:
            node.process.deliver(node.broker.rebalance_group, group_id, begun.set_result, begun.set_exception)
        await self._until_changed(
            begun.done, lambda: f"broker {group.coordinator} to rebalance group {group_id}", WAIT_LIMIT_S
        )
        begun.result()

    @waiting_verb(path="/groups/{group_id}/configs")
    async def set_group_configs(self, group_id: str, configs: Mapping[str, GivenValue] | None = None) -> None:
        """Set configurations of a group, such as `share.auto.offset.reset`; others stay as they are.

        The group need not exist yet. Returns when every running broker that can be reached has them. Raises ApiError
        with the errors of IncrementalAlterConfigs, ValueError without configurations.
        """
        from broker_sim.config import to_texts  # noqa: PLC0415 - see `Verbs`
        from broker_sim.controller import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType  # noqa: PLC0415 - see `Verbs`
        from broker_sim.errors import ApiError  # noqa: PLC0415 - see `Verbs`
        from broker_sim.runtime.arguments import check_can_be_sent  # noqa: PLC0415 - see `Verbs`

        if not configs:
            raise ValueError("pass at least one configuration, such as share.auto.offset.reset=earliest")
        texts = to_texts(configs)
        check_can_be_sent(group_id, *texts, *texts.values())
        changes = [ConfigAlteration(name, AlterOp.SET, text) for name, text in texts.items()]
        resource = ConfigResource(ConfigResourceType.GROUP, group_id)
        controller = self.nodes.controller
        ((_, outcome),) = controller.incremental_alter_configs([(resource, changes)])
        if not outcome.ok:
            raise ApiError(outcome.error_code, outcome.error_message or "")
        what = f"the brokers to learn of the configurations of group {group_id}"
        await self._until_brokers_have(controller.image.version, what)

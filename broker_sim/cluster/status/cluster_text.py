"""The state of a cluster in words, for failed tests and the verb `describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_purgatory import SystemClock

from broker_sim.cluster.status.cluster_status import cluster_status, purgatories_status
from broker_sim.handlers.context import RequestContext
from broker_sim.handlers.faults.targets import targets_of
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker_sim_purgatory import ParkedOperation

    from broker_sim.cluster.nodes.nodes import Nodes
    from broker_sim.cluster.status.cluster_status import ClusterStatus, PartitionStatus, PurgatoryStatus
    from broker_sim.cluster.status.coordinator_status import GroupStatus
    from broker_sim.cluster.status.share_status import SharePartitionStatus
    from broker_sim.handlers.request_log import RequestStatus

SHOWN_PARTITIONS: Final = 12
SHOWN_CLIENTS: Final = 8
SHOWN_REQUESTS: Final = 5
SHOWN_PARKED: Final = 5
SHOWN_KEYS: Final = 4


def cluster_text(nodes: Nodes) -> str:
    """Describe unusual brokers, partitions of the test, groups, parked operations and the last requests."""
    status = cluster_status(nodes)
    sections = {
        "brokers": _brokers(status),
        "partitions": _partitions(status),
        "groups": [_group(group) for group in status.groups],
        "parked": [line for one in purgatories_status(nodes) for line in _parked(one)],
    }
    sections |= _requests(nodes)
    return "\n".join(
        f"{title}:\n" + "\n".join(f"  {line}" for line in lines) for title, lines in sections.items() if lines
    )


def _brokers(status: ClusterStatus) -> list[str]:
    """Return lines on brokers in an unusual state, cut links and injected faults."""
    lines = []
    for broker in status.brokers:
        is_unusual = {
            broker.state: broker.state != "running",
            "fenced": broker.fenced,
            "cut off from clients": broker.clients_cut_off,
        }
        if any(is_unusual.values()):
            lines.append(f"{broker.id} is {', '.join(what for what, is_so in is_unusual.items() if is_so)}")
    for link in status.links:
        state = "is cut" if link.drop else f"takes {link.delay_ms} ms"
        lines.append(f"the link from {link.source} to {link.target} {state}")
    if status.metadata_delay_ms:
        lines.append(f"new metadata is up to {status.metadata_delay_ms} ms late")
    lines += [f"an injected fault has hit {fault.hits} requests of {fault.api}" for fault in status.faults]
    return lines


def _partitions(status: ClusterStatus) -> list[str]:
    states = {broker.id: broker.state for broker in status.brokers}
    partitions = [one for topic in status.topics if not topic.name.startswith("__") for one in topic.partitions]
    # Partitions with a problem first.
    partitions.sort(key=lambda one: one.leader is not None and len(one.isr) == len(one.assignment))
    return _cut([_partition(one, states) for one in partitions], SHOWN_PARTITIONS)


def _partition(one: PartitionStatus, states: dict[int, str]) -> str:
    leader = "no leader" if one.leader is None else f"leader {one.leader}"
    ends = ", ".join(
        f"{each.broker}{'' if states[each.broker] == 'running' else f' ({states[each.broker]})'}"
        f" to {each.log_end_offset}"
        for each in one.replicas
    )
    return (
        f"{one.topic}-{one.partition}: {leader}, epoch {one.leader_epoch}, ISR {_ids(one.isr)} of "
        f"{_ids(one.assignment)}, high watermark {one.high_watermark}; logs: {ends or 'none alive'}"
    )


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids)) or "none"


def _group(group: GroupStatus) -> str:
    members = "; ".join(f"{member.client_id} has {_names(member.assignment)}" for member in group.members)
    offsets = ", ".join(
        f"{each.topic}-{each.partition} {each.committed_offset} of {each.high_watermark}"
        for each in group.offsets[:SHOWN_PARTITIONS]
    )
    return (
        f"{group.id}: {group.state}, coordinator {group.coordinator}, {len(group.members)} members"
        f"{f' ({members})' if members else ''}, lag {group.lag}{f': {offsets}' if offsets else ''}"
        f"{''.join(_in_flight(one) for one in group.share_partitions)}"
    )


def _in_flight(one: SharePartitionStatus) -> str:
    """Describe the records in flight of a share partition: states and number of deliveries."""
    if not one.in_flight:
        return ""
    states = ", ".join(
        f"{one.count(state)} {state.lower()}" for state in sorted({each.state for each in one.in_flight})
    )
    most = max(each.delivery_count for each in one.in_flight)
    return f"; in flight of {one.topic}-{one.partition}: {states}, delivered up to {most} times"


def _names(keys: Iterable[object]) -> str:
    return ", ".join(_cut(sorted(map(str, keys)), SHOWN_KEYS)) or "nothing"


def _parked(purgatory: PurgatoryStatus) -> Iterator[str]:
    """Return a line for each produce request; for other purgatories one line for all operations."""
    where = f"{purgatory.name} of broker {purgatory.broker}"
    if purgatory.name == "Produce":
        lines = [
            f"{where}: {_names(one.keys)} waits for {waits_for}, {one.age_ms} of {one.delay_ms} ms are over"
            for one, waits_for in zip(purgatory.parked, purgatory.waits_for, strict=True)
        ]
        yield from _cut(lines, SHOWN_PARKED)
        return
    parked = [one for one in purgatory.parked if _of_the_test(one)]
    if parked:
        keys = {key for one in parked for key in _of_the_test(one)}
        left_ms = min(one.time_left_ms for one in parked)
        waits = f"{len(parked)} {'waits' if len(parked) == 1 else 'wait'} for {purgatory.waits_for[0]}"
        yield f"{where}: {waits}, the first for {left_ms} ms more: {_names(keys)}"


def _of_the_test(one: ParkedOperation) -> list[str]:
    """Return the operation's keys without those of internal topics."""
    return [key for key in map(str, one.keys) if not key.startswith("__")]


def _requests(nodes: Nodes) -> dict[str, list[str]]:
    """Return the last requests of the most recent clients, by title of the section."""
    by_client: dict[str, list[RequestStatus]] = {}
    for one in nodes.requests.find(None, None):
        name = one.client_id or "clients without a name"
        by_client[name] = [*by_client.pop(name, [])[1 - SHOWN_REQUESTS :], one]
    return {
        f"last requests of {name}": [_request(one, nodes) for one in requests]
        for name, requests in list(by_client.items())[-SHOWN_CLIENTS:]
    }


def _request(one: RequestStatus, nodes: Nodes) -> str:
    clock = nodes.scheduler.clock
    ago_ms = clock.wall_clock_ms() - one.received_ms
    # In virtual time the moment itself is meaningful.
    when = f"{ago_ms / 1000:.3f} s ago"
    if not isinstance(clock, SystemClock):
        when = f"{(clock.now_ms() - ago_ms) / 1000:.3f} s"
    errors = ", ".join(error.name for error in one.errors)
    outcome = "not answered yet"
    if one.elapsed_ms is not None:
        outcome = f"answered after {one.elapsed_ms} ms{f': {errors}' if errors else ''}"
    names = ", ".join(_cut(_targets(one, nodes), SHOWN_KEYS))
    what = f" {names}" if names else ""
    return f"{when} {one.api}{what} to broker {one.broker}, {outcome}"


def _targets(one: RequestStatus, nodes: Nodes) -> list[str]:
    """Return the partitions or topics that a request names; none if its broker is dead."""
    broker = nodes.brokers.get(one.broker)
    if broker is None:
        return []
    connection: Any = None  # targets_of does not use it
    api = ApiKey(one.request.API_KEY)
    context = RequestContext(broker, connection, api, one.api_version, one.client_id)
    targets = targets_of(one.request, context)
    return sorted({str(key) if key.partition >= 0 else key.topic for key in targets})


def _cut(lines: list[str], row_count: int) -> list[str]:
    return lines if len(lines) <= row_count else [*lines[:row_count], f"and {len(lines) - row_count} more"]

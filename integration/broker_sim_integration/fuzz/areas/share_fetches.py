"""Fetches and acknowledgements of share group members, in all valid ways and some invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import pick, request, several

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

CLIENTS: Final = ("a", "a", "b")
GROUPS: Final = ("<group1>", "<group1>", "<group1>", "<group1>", "<group2>")
HOME: Final = ("<topic1>", 0)
TOPICS: Final = (HOME, HOME, HOME, HOME, ("<topic1>", 1), ("<topic2>", 0), ("<topic3>", 0))
WAIT_MS: Final = 400
LONG_WAIT_MS: Final = 20_000
ALL_BYTES: Final = 1_000_000
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
KINDS: Final = (ACCEPT, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP)
BAD_KINDS: Final = (RENEW, 5, -1)


def group_of(rng: random.Random) -> str:
    """Return the group of a request, usually the first one.

    All sequences share the group with the empty name, so no member that fetches for it is drawn.
    """
    return pick(rng, GROUPS, ("<nothing>",), 30)


def member_of(rng: random.Random, client: str) -> str:
    """Return the member id in a client's request, usually its own."""
    return pick(rng, [f"member-{client}"], ("member-a", "member-b", "", "m" * 37), 20)


def _epoch(rng: random.Random, client: str) -> str | int:
    own = f"<{client}.share_session_epoch>"
    others: tuple[str | int, ...] = (own[:-1] + "+1>", 0, 0, -1, 1, 5)
    return pick(rng, [own], others, 8)


def _ranges(rng: random.Random, client: str) -> list[dict[str, Any]]:
    """Return the acknowledged ranges: all records that the client acquired last, a part of them, or any."""
    first, last = f"<{client}.acquired_first>", f"<{client}.acquired_last>"
    kind = pick(rng, KINDS, BAD_KINDS, 12)
    match rng.randrange(8):
        case 0 | 1 | 2:
            return [_range(first, last, kind)]
        case 3:
            return [_range(first, first, kind)]
        case 4:
            return [_range(first, first[:-1] + "+1>", kind, rng.choice(KINDS))]
        case 5:
            rest = _range(first[:-1] + "+1>", last, rng.choice(KINDS))
            return [_range(first, first, kind), rest]
        case 6:
            return [_range(last, pick(rng, [last], (last[:-1] + "+1>",), 3), kind)]
    start = rng.randint(0, 6)
    length = rng.randint(1, 4)
    kinds = [kind, *(rng.choice(KINDS) for _ in range(length - 1))]
    whole = _range(start, start + length - 1, *pick(rng, [kinds, [kind]], ([], [kind] * 2), 6))
    after = start + length + rng.randint(0, 2)
    more = _range(pick(rng, [after], (start,), 5), after + 1, rng.choice(KINDS))
    return [whole, more] if rng.random() < 0.3 else [whole]


def _range(first: str | int, last: str | int, *kinds: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(kinds)}


def _topics(asked: dict[tuple[str, int], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the topics of a request from the ranges acknowledged in each partition."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (name, index), ranges in asked.items():
        partition = {"partition_index": index, "acknowledgement_batches": ranges}
        topics.setdefault(name, []).append(partition)
    return [{"topic_id": f"{name[:-1]}.id>", "partitions": partitions} for name, partitions in topics.items()]


def share_fetch(rng: random.Random, client: str = "", group: str = "", *, wait_ms: int | None = None) -> Request:
    """Open, continue or end a session; sometimes with acknowledgements.

    A partition that is new to the broker is read late if another one has records already. So a fetch waits for its
    full time unless it is for the most frequent partition.
    """
    client, group = client or rng.choice(CLIENTS), group or group_of(rng)
    own = f"<{client}.share_session_epoch>"
    epoch = own if wait_ms is not None else _epoch(rng, client)
    wanted: list[tuple[str, int]] = [HOME]
    if rng.random() < 0.3:
        wanted = several(rng, [*TOPICS, pick(rng, [HOME], (("<nothing>", 0), ("<topic1>", 7)), 6)])
    elif epoch == own and rng.random() < 0.2:
        wanted = []
    asked: dict[tuple[str, int], list[dict[str, Any]]] = {one: [] for one in wanted}
    is_renewal = wait_ms is None and rng.random() < 0.08
    if wait_ms is None and rng.random() < 0.25:
        asked[HOME] = _ranges(rng, client)
    if is_renewal:
        first, last = f"<{client}.acquired_first>", f"<{client}.acquired_last>"
        asked[HOME] = [_range(first, pick(rng, [last], (first,), 3), RENEW)]
    is_home = all(one == HOME for one in wanted)
    forgotten = [{"topic_id": "<topic1.id>", "partitions": [rng.randint(0, 1)]}]
    limits: dict[str, Any] = {
        "max_wait_ms": wait_ms or pick(rng, [WAIT_MS], (LONG_WAIT_MS,) if is_home else (), 25),
        "min_bytes": 1 if is_home else ALL_BYTES,
        "max_bytes": pick(rng, [ALL_BYTES], (1, 100, 0) if is_home else (), 12),
        "max_records": pick(rng, [500, 500, 2], (1, 0, 3)),
        "batch_size": pick(rng, [500, 1, 2], (0,), 20),
    }
    if is_renewal and rng.random() < 0.8:
        limits = dict.fromkeys(limits, 0)
    return request(
        client,
        "first",
        "ShareFetch",
        2 if is_renewal else pick(rng, [2], (1,), 4),
        group_id=group,
        member_id=member_of(rng, client),
        share_session_epoch=epoch,
        share_acquire_mode=pick(rng, [0, 0, 1], (2,), 40),
        is_renew_ack=is_renewal,
        topics=_topics(asked),
        forgotten_topics_data=forgotten if rng.random() < 0.06 else [],
        **limits,
    )


def acknowledge(rng: random.Random, client: str = "", group: str = "", *, epoch: int | None = None) -> Request:
    """Acknowledge in a separate request; an epoch of -1 ends the session."""
    client, group = client or rng.choice(CLIENTS), group or group_of(rng)
    asked = {HOME: _ranges(rng, client)}
    if rng.random() < 0.1:
        asked[rng.choice(TOPICS)] = _ranges(rng, client)
    if rng.random() < 0.05:
        asked["<nothing>", 0] = _ranges(rng, client)
    if epoch is not None and rng.random() < 0.5:
        asked = {}
    is_renewal = rng.random() < 0.12
    if is_renewal and asked:
        first, last = f"<{client}.acquired_first>", f"<{client}.acquired_last>"
        asked[HOME] = [_range(first, last, RENEW)]
    return request(
        client,
        "first",
        "ShareAcknowledge",
        2 if is_renewal else pick(rng, [2], (1,), 4),
        group_id=group,
        member_id=member_of(rng, client),
        share_session_epoch=_epoch(rng, client) if epoch is None else epoch,
        is_renew_ack=is_renewal,
        topics=_topics(asked),
    )

"""Members of streams groups that join, stay and leave, and requests that describe the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.fuzz.areas.area import pick, request, several
from broker_sim_integration.fuzz.areas.streams_topologies import GROUPS, topology

if TYPE_CHECKING:
    import random

    from broker_sim_integration.fuzz.sequence import Request

LETTERS: Final = ("a", "b", "c")
"""Clients of a group; see `client_of`."""
ALL_GROUPS: Final = tuple(dict.fromkeys(GROUPS))
NO_GROUPS: Final = ("<nothing>", "")
ENDPOINTS: Final = ({"host": "a", "port": 1}, {"host": "b", "port": 65535}, {"host": "", "port": 0})
TAGS: Final[tuple[list[dict[str, str]], ...]] = (
    [],
    [{"key": "zone", "value": "1"}],
    [{"key": "zone", "value": "2"}, {"key": "cluster", "value": ""}],
    [{"key": "zone", "value": "1"}, {"key": "zone", "value": "2"}],
)
NO_TASKS: Final[dict[str, Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def coordinator_of(rng: random.Random, group: str) -> str:
    """Return the broker of a request about a group, usually its coordinator."""
    name = group if "<" in group else "<group1>"
    return f"other {name}" if rng.randrange(30) == 0 else f"coordinator {name}"


def group_of(rng: random.Random) -> str:
    """Return the group of a request."""
    return pick(rng, GROUPS, NO_GROUPS, 25)


def client_of(group: str, letter: str) -> str:
    """Return a client of a group; it has an epoch in that group only."""
    return f"{letter}{ALL_GROUPS.index(group) + 1 if group in ALL_GROUPS else 1}"


def member_of(rng: random.Random, client: str) -> str:
    """Return a client's member id, rarely another one."""
    return pick(rng, [f"member-{client}"], (f"member-a{client[1:]}", "nobody", ""), 40)


def _tasks(rng: random.Random, client: str) -> dict[str, Any]:
    """Return the tasks that a member reports: its last assignment, none, or any."""
    told = {name: f"<{client}.{name}>" for name in NO_TASKS}
    silent: dict[str, Any] = dict.fromkeys(NO_TASKS)
    if rng.randrange(5):
        return pick(rng, [told, told, told, silent, NO_TASKS])
    owned = {
        name: [
            {"subtopology_id": pick(rng, [one], ("9", "")), "partitions": several(rng, [0, 1, 2])}
            for one in several(rng, ["0", "1"])
        ]
        for name in ("active_tasks", "standby_tasks")
    }
    named: dict[str, Any] = {name: pick(rng, [owned[name]], ([], None), 3) for name in owned}
    return named | {"warmup_tasks": pick(rng, [[]], (None, owned["active_tasks"]), 8)}


def _of_process(rng: random.Random, client: str) -> dict[str, Any]:
    """Return rare fields of a heartbeat: those about the member's process."""
    return {
        "endpoint_information_epoch": pick(rng, [f"<{client}.endpoint_information_epoch>"], (0, -1, 5), 4),
        "instance_id": pick(rng, [None], ("i1", ""), 90),
        "rack_id": pick(rng, pick(rng, [[None]], (["rack"], ["rack"], ["rack"], ["", " "]), 8)),
        "user_endpoint": pick(rng, [None], ENDPOINTS, 4),
        "client_tags": pick(rng, [None], TAGS, 8),
        "task_offsets": pick(rng, [None], ([],), 120),
        "task_end_offsets": pick(rng, [None], ([],), 120),
        "shutdown_application": rng.randrange(60) == 0,
    }


def join(rng: random.Random, letter: str = "", group: str = "") -> Request:
    """Join or join again."""
    group = group or group_of(rng)
    client = client_of(group, letter or rng.choice(LETTERS))
    return request(
        client,
        coordinator_of(rng, group),
        "StreamsGroupHeartbeat",
        0,
        **_of_process(rng, client),
        **pick(rng, [NO_TASKS], (_tasks(rng, client),), 20),
        group_id=group,
        member_id=member_of(rng, client),
        member_epoch=0,
        rebalance_timeout_ms=pick(rng, [60_000], (-1, 0), 30),
        topology=pick(rng, [topology(rng, group)], (None,), 30),
        process_id=pick(rng, [f"process-{client[0]}"], ("process-a", "", None), 8),
    )


def heartbeat(rng: random.Random, letter: str = "", group: str = "") -> Request:
    """Send a heartbeat, usually with the member's epoch."""
    group = group or group_of(rng)
    client = client_of(group, letter or rng.choice(LETTERS))
    own = f"<{client}.member_epoch>"
    return request(
        client,
        coordinator_of(rng, group),
        "StreamsGroupHeartbeat",
        0,
        **_of_process(rng, client),
        **_tasks(rng, client),
        group_id=group,
        member_id=member_of(rng, client),
        member_epoch=pick(rng, [own], (own[:-1] + "+1>", own[:-1] + "-1>", own[:-1] + "-1>", 1, -2, -3), 10),
        rebalance_timeout_ms=pick(rng, [-1], (60_000,), 8),
        topology=pick(rng, [None], (topology(rng, group),), 40),
        process_id=pick(rng, [None], ("process-a", "process-b"), 12),
    )


def leave(rng: random.Random) -> Request:
    """Leave a group."""
    group = group_of(rng)
    client = client_of(group, rng.choice(LETTERS))
    return request(
        client,
        coordinator_of(rng, group),
        "StreamsGroupHeartbeat",
        0,
        group_id=group,
        member_id=member_of(rng, client),
        member_epoch=-1,
        shutdown_application=rng.randrange(6) == 0,
    )


def life(rng: random.Random) -> tuple[Request, ...]:
    """Join a group and send some heartbeats, maybe while another member joins."""
    group = rng.choice(GROUPS)
    letters = several(rng, LETTERS, 3)
    joined = letters[:1]
    requests = [join(rng, letters[0], group)]
    for _ in range(rng.randint(1, 8)):
        letter = rng.choice(letters)
        if letter in joined:
            requests.append(heartbeat(rng, letter, group))
        else:
            joined.append(letter)
            requests.append(join(rng, letter, group))
    return tuple(requests)


def look(rng: random.Random) -> Request:
    """Describe and list groups."""
    groups = several(rng, [*ALL_GROUPS, pick(rng, ALL_GROUPS, NO_GROUPS)], 3)
    at = coordinator_of(rng, groups[0])
    if rng.random() < 0.7:
        return request(
            "x", at, "StreamsGroupDescribe", 0,
            group_ids=groups, include_authorized_operations=rng.random() < 0.2,
        )  # fmt: skip
    states = ("Stable", "notready", "Assigning", "Reconciling", "Empty", "Dead", "own")
    return request(
        "x",
        at,
        "ListGroups",
        5,
        states_filter=several(rng, states) if rng.random() < 0.5 else [],
        types_filter=several(rng, ("streams", "Streams", "classic")) if rng.random() < 0.5 else [],
    )

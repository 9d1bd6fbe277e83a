"""Defects of streams groups; see mutant.py."""

import inspect
from dataclasses import replace

from broker_sim.group.modern.settings import GroupSettings
from broker_sim.group.streams.streams_groups import StreamsGroups

LATE_MS = 250


def _add_to(name: str, more_ms: int) -> None:
    """Let a configuration of streams groups count for more."""
    original = GroupSettings.of_group

    def of_group(self, group_id, asked, default=None):
        number = original(self, group_id, asked, default)
        return number + more_ms if self._kind == "streams" and asked == name else number

    GroupSettings.of_group = of_group


def streams_sessions_end_late() -> None:
    """A silent member of a streams group is fenced a quarter of a second late."""
    _add_to("session.timeout.ms", LATE_MS)


def streams_sessions_end_early() -> None:
    """A silent member of a streams group is fenced a quarter of a second early."""
    _add_to("session.timeout.ms", -LATE_MS)


def streams_revocations_end_late() -> None:
    """A member that does not give up its tasks is fenced a quarter of a second late."""
    original = StreamsGroups.begin_revocation_timeout

    def begin_revocation_timeout(self, group_id, member):
        longer_ms = member.rebalance_timeout_ms + LATE_MS
        original(self, group_id, replace(member, rebalance_timeout_ms=longer_ms))

    StreamsGroups.begin_revocation_timeout = begin_revocation_timeout


def new_streams_groups_wait_late() -> None:
    """The first tasks of a streams group are assigned a quarter of a second late."""
    _add_to("initial.rebalance.delay.ms", LATE_MS)


def streams_members_are_told_another_interval() -> None:
    """Members of streams groups send heartbeats a millisecond too seldom."""
    _add_to("heartbeat.interval.ms", 1)


MUTANTS = {
    name: found
    for name, found in list(globals().items())
    if inspect.isfunction(found) and found.__module__ == __name__ and not name.startswith("_")
}

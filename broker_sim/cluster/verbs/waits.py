"""Verbs that wait for what clients and followers bring about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import WAIT_LIMIT_S, BaseVerbs
from broker_sim.control.verb import waiting_verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.cluster.status.cluster_status import PartitionStatus
    from broker_sim.cluster.status.coordinator_status import GroupStatus


class WaitVerbs(BaseVerbs):
    """What can be waited for. The waits wake when something changes."""

    @waiting_verb()
    async def wait_until_in_sync(self, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until every partition has a leader and all of its replicas in the ISR.

        Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        await self._until(lambda: self.nodes.is_in_sync, "all replicas to be in sync", timeout_s)

    @waiting_verb(path="/topics/{topic}/partitions/{partition}/wait-for-isr")
    async def wait_for_isr(
        self,
        topic: str,
        partition: int = 0,
        size: int | None = None,
        *,
        has: int | None = None,
        lacks: int | None = None,
        timeout_s: float = WAIT_LIMIT_S,
    ) -> PartitionStatus:
        """Wait until a partition's ISR is as asked for; returns the partition then.

        `size` is how many in-sync replicas there are: all, unless anything is given. `has` and `lacks`
        are brokers. Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        from broker_sim.cluster.status.cluster_status import partition_status  # noqa: PLC0415 - see `Verbs`

        status = partition_status(self.nodes, topic, partition)
        wanted = size
        if (size, has, lacks) == (None, None, None):
            wanted = len(status.assignment)

        def is_reached() -> bool:
            nonlocal status
            status = partition_status(self.nodes, topic, partition)
            isr = status.isr
            return wanted in (None, len(isr)) and (has is None or has in isr) and (lacks is None or lacks not in isr)

        wishes = {"size": wanted, "has": has, "lacks": lacks}
        what = f"the ISR of {topic}-{partition} ({_text(wishes)})"
        await self._until_changed(is_reached, lambda: f"{what}; it is {list(status.isr)}", timeout_s)
        return status

    @waiting_verb(path="/groups/{group_id}/wait-for-group")
    async def wait_for_group(
        self,
        group_id: str,
        state: str | None = None,
        *,
        members: int | None = None,
        lag: int | None = None,
        timeout_s: float = WAIT_LIMIT_S,
    ) -> GroupStatus:
        """Wait until a group is as asked for; returns it then.

        `state` is a name such as "Stable"; it is Stable unless anything is given. `members` is how many
        members it has, `lag` the most that may be left to commit, or to be done by a share group. The group
        may come later. Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`

        if (state, members, lag) == (None, None, None):
            state = "Stable"
        found: GroupStatus | None = None

        def is_reached() -> bool:
            nonlocal found
            found = next(iter(groups_status(self.nodes, group_id)), None)
            return (
                found is not None
                and state in (None, found.state)
                and members in (None, len(found.members))
                and (lag is None or found.lag <= lag)
            )

        def describe() -> str:
            wishes = {"state": state, "members": members, "lag": lag}
            now = "it does not exist"
            if found is not None:
                now = f"it is {found.state} with {len(found.members)} members and a lag of {found.lag}"
            return f"group {group_id} ({_text(wishes)}); {now}"

        await self._until_changed(is_reached, describe, timeout_s)
        assert found is not None
        return found


def _text(wishes: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in wishes.items() if value is not None)

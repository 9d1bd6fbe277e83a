"""The next state of a partition: its leader, ISR, and eligible leader replicas (ELR).

Mirrors `PartitionChangeBuilder`, `PartitionRegistration.merge` and
`PartitionReassignmentReplicas` of Kafka. Deliberate differences: `build` returns the new
state instead of a record; the ELR is in ascending order, which is that of Kafka's hash set for
small ids; -1 is never stored as the last known leader, while Kafka stores it when a reassignment
completes without a leader.

The rules of KIP-966, when it is enabled:

- The ISR may become empty. A replica that leaves it while fewer than `min_isr` remain joins the
  ELR, and can be elected without loss as long as the ISR is empty.
- The ELR is emptied once the ISR has `min_isr` members again.
- A replica that restarts after an unclean shutdown is removed from ISR and ELR.
- A partition that loses its leader stores it as `last_known_elr`. With ISR and ELR empty, that
  replica may lead again, and the partition is `recovering`.

Without KIP-966 the last member of the ISR stays in it even without a leader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from broker_sim.metadata import NO_LEADER, PartitionState


class Election(Enum):
    """The replica an election prefers."""

    PREFERRED = "`preferred_leader` if it is in the ISR, else as ONLINE"
    ONLINE = "the current leader, else the first replica in the ISR"
    UNCLEAN = "as ONLINE, else any live replica"


@dataclass(slots=True)
class PartitionChangeBuilder:
    """Computes the next state of `partition` from its target changes.

    `is_acceptable_leader(broker_id)` returns whether a broker may lead now. `min_isr` is the effective
    minimum, capped at the number of replicas. Use an instance once, in one thread.
    """

    partition: PartitionState
    is_acceptable_leader: Callable[[int], bool]
    min_isr: int
    elr_enabled: bool
    election: Election = Election.ONLINE
    preferred_leader: int | None = None
    """The replica that the election PREFERRED prefers; None is the first one, as in Kafka."""
    target_isr: tuple[int, ...] | None = None
    target_replicas: tuple[int, ...] | None = None
    target_adding: tuple[int, ...] | None = None
    target_removing: tuple[int, ...] | None = None
    target_recovering: bool | None = None
    unclean_shutdown_replica: int | None = None

    def build(self) -> PartitionState | None:
        """Return the next state with the next partition epoch; None if nothing changes."""
        old = self.partition
        target = self._with_reassignment_completed(self._targets())
        if self.elr_enabled:
            target = self._with_elr(target)
        elected, unclean = self._elect(target)
        leader_changes = elected != old.leader
        if leader_changes:
            target = self._with_leader(target, elected, unclean=unclean)
        # A removed replica must stop fetching: the new leader epoch fences it.
        replicas_leave = not set(old.replicas) <= set(target.replicas)
        bump = leader_changes or replicas_leave
        if target.elr and ((leader_changes and unclean) or not self.elr_enabled):
            target = target._replace(elr=())
        if not target.isr and not self.elr_enabled:
            target = target._replace(isr=old.isr)
        last_known = self._last_known_leader(target.leader, bump=bump)
        if target == old and last_known == old.last_known_elr and not bump:
            return None
        return target._replace(
            last_known_elr=last_known,
            leader_epoch=old.leader_epoch + bump,
            partition_epoch=old.partition_epoch + 1,
        )

    def _targets(self) -> PartitionState:
        old = self.partition
        targets = (self.target_isr, self.target_replicas, self.target_adding, self.target_removing)
        recovering = self.target_recovering
        if recovering is None and not any(target is not None for target in targets):
            return old

        def merged(target: tuple[int, ...] | None, present: tuple[int, ...]) -> tuple[int, ...]:
            return present if target is None else target

        return old._replace(
            isr=merged(self.target_isr, old.isr),
            replicas=merged(self.target_replicas, old.replicas),
            adding_replicas=merged(self.target_adding, old.adding_replicas),
            removing_replicas=merged(self.target_removing, old.removing_replicas),
            recovering=old.recovering if recovering is None else recovering,
        )

    @staticmethod
    def _with_reassignment_completed(target: PartitionState) -> PartitionState:
        """Finish a reassignment once the new replicas are in the ISR."""
        adding, removing = target.adding_replicas, target.removing_replicas
        if not target.is_reassigning:
            return target
        isr = tuple(replica for replica in target.isr if replica not in removing)
        replicas = tuple(replica for replica in target.replicas if replica not in removing)
        if removing and (not isr or not replicas):
            return target
        if not set(adding) <= set(isr):
            return target
        if len(adding) < len(removing) and not set(replicas) <= set(isr):
            # With fewer replicas than before, all of them must be in sync.
            return target
        return target._replace(isr=isr, replicas=replicas, adding_replicas=(), removing_replicas=())

    def _with_elr(self, target: PartitionState) -> PartitionState:
        """Add replicas that leave a too small ISR to the ELR; empty the ELR once the ISR has `min_isr` members."""
        if len(target.isr) >= self.min_isr:
            return target._replace(elr=()) if target.elr else target
        candidates = {*self.partition.elr, *self.partition.isr}
        leaving = {*target.isr, self.unclean_shutdown_replica}
        elr = tuple(sorted(candidates - leaving))
        return target if elr == target.elr else target._replace(elr=elr)

    def _elect(self, target: PartitionState) -> tuple[int, bool]:
        """Return the new leader, and whether the election may lose records."""

        def can_lead(replica: int) -> bool:
            eligible = target.isr or target.elr
            return replica in eligible and self.is_acceptable_leader(replica)

        present = self.partition.leader
        candidates = (present, *target.replicas)
        if self.election is Election.PREFERRED:
            preferred = self.preferred_leader
            candidates = (target.replicas[0] if preferred is None else preferred, *candidates)
        for replica in candidates:
            if can_lead(replica):
                return replica, False
        last_known = self._electable_last_known_leader(target)
        if last_known is not None:
            return last_known, True
        if self.election is Election.UNCLEAN:
            for replica in target.replicas:
                if self.is_acceptable_leader(replica):
                    return replica, True
        return NO_LEADER, False

    def _electable_last_known_leader(self, target: PartitionState) -> int | None:
        """Return the last leader if it is alive and no other replica is eligible."""
        last_known = self.partition.last_known_elr
        if not self.elr_enabled or target.isr or target.elr or len(last_known) != 1:
            return None
        return last_known[0] if self.is_acceptable_leader(last_known[0]) else None

    @staticmethod
    def _with_leader(target: PartitionState, leader: int, *, unclean: bool) -> PartitionState:
        if unclean:
            # From now on only the log of the new leader counts, whatever records other replicas have.
            return target._replace(leader=leader, isr=(leader,), recovering=True)
        if leader in target.elr:
            elr = tuple(replica for replica in target.elr if replica != leader)
            return target._replace(leader=leader, isr=(leader,), elr=elr)
        return target._replace(leader=leader)

    def _last_known_leader(self, leader: int, *, bump: bool) -> tuple[int, ...]:
        """Return the last known leader: set when the leader is lost, empty while there is a leader."""
        last_known = self.partition.last_known_elr
        if not self.elr_enabled or not bump:
            return last_known
        if leader != NO_LEADER:
            return ()
        former_leader = self.partition.leader
        return last_known or ((former_leader,) if former_leader != NO_LEADER else ())

"""Members of a group of the consumer protocol (KIP-848) in a random run.

Each does what Kafka's `ConsumerMembershipManager` does: it sends heartbeats, gives up what is not in its
assignment and says so, and begins anew when it is fenced. Some take long to give up, some are static. What
members learn is kept in `ConsumerHistory`, which says what may never happen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.random_run.checks.group_history import Term
from broker_sim.cluster.random_run.clients.coordinated_client import AgainError
from broker_sim.cluster.random_run.clients.group_member import (
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    GroupMember,
    JoinAgainError,
)
from broker_sim.cluster.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ErrorCode
from broker_sim.group.consumer.member import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.cluster.random_run.checks.group_history import ConsumerHistory
    from broker_sim.cluster.random_run.clients.surroundings import Surroundings

__all__ = ["CONSUMER_GROUP", "ConsumerMember"]

CONSUMER_GROUP: Final = "consumer-group"
IS_SLOW_SHARE: Final = 0.2
"""How often a member does not give up at once what it has lost."""
GIVES_UP_SHARE: Final = 0.1
"""How often it then does before a heartbeat; others are fenced when the rebalance timeout is over."""
STATIC_EVERY: Final = 3
JOINS: Final = 0

FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
LATER: Final = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.STALE_MEMBER_EPOCH})
"""Errors after which it goes on: another one has its instance id yet, or its next heartbeat helps."""


class ConsumerMember(GroupMember):
    """One member; every third one is static."""

    strays_share = 0.02
    commits_share = 0.4

    _history: ConsumerHistory

    def __init__(self, around: Surroundings, number: int) -> None:
        name, chance = f"consumer-member-{number}", f"consumers/{number}"
        super().__init__(around, name, CONSUMER_GROUP, chance, around.consumer_history)
        self._instance_id = f"instance-{number}" if number % STATIC_EVERY == 2 else None
        self._lives = 0
        self._assigned: tuple[int, ...] = ()
        """What it owns as soon as it has given up the rest."""
        self._tells_all = True
        self._tells_owned = True
        self._asked_ms: int | None = None
        """When it sent the first heartbeat whose answer might have taken partitions that it owns yet."""
        self._safe_until_ms: int | None = None
        """Until when no coordinator may fence it; None if an answer was lost, and its epoch may be old."""
        self._safe_since_ms = 0
        """When it sent the heartbeat that says so: an admin client may have removed it since."""
        self._begin_anew()

    @property
    def _owner(self) -> str:
        return self._instance_id or self._member_id

    def _begin_anew(self) -> None:
        self._lives += 1
        self._member_id = f"{self._name}-{self._lives}"
        self._lose_all()

    def _lose_all(self) -> None:
        self._positions = {}
        self._epoch = JOINS
        self._assigned = ()
        self._tells_all = True
        self._asked_ms = self._safe_until_ms = None

    def _check(self, error_code: int) -> None:
        if not error_code:
            return
        self._record(self._name, error_code, self._epoch)
        super()._check(error_code)
        if error_code in FENCED:
            self._history.give_up(self._owner)
            self._lose_all()
            raise JoinAgainError
        if error_code not in LATER:
            violated("errors-are-expected", f"{self._name} got {ErrorCode(error_code).name}")
        raise AgainError

    def _leaving(self) -> Any:
        request = self._empty_heartbeat()
        is_back_soon = self._instance_id is not None and self._is_drawn(0.5)
        request.member_epoch = LEAVE_GROUP_STATIC_EPOCH if is_back_soon else LEAVE_GROUP_EPOCH
        self._history.give_up(self._owner)
        return request

    # -- heartbeats -------------------------------------------------------------------------------

    async def _join(self) -> None:
        await self._take_step(self._beat)

    async def _beat(self) -> None:
        if self._is_giving_up and self._is_drawn(GIVES_UP_SHARE):
            self._take_assigned()
        request = self._heartbeat()
        sent_ms = self._around.cluster.now_ms
        if self._asked_ms is None:
            self._asked_ms = sent_ms
        safe_until_ms = self._safe_until_ms
        # It is unsure until the answer is there.
        self._tells_all, self._safe_until_ms = True, None
        response, is_newest = await self._ask_newest(self._group, request)
        if is_newest and response.error_code in FENCED:
            self._check_may_be_fenced(response.error_code, safe_until_ms)
        self._check(response.error_code)
        self._take_answer(response, sent_ms, is_newest=is_newest)

    @property
    def _is_giving_up(self) -> bool:
        """Whether it owns what is not assigned to it any more."""
        return not self._positions.keys() <= set(self._assigned)

    def _empty_heartbeat(self) -> messages.ConsumerGroupHeartbeatRequest:
        return messages.ConsumerGroupHeartbeatRequest(
            group_id=self._group,
            member_id=self._member_id,
            instance_id=self._instance_id,
            member_epoch=self._epoch,
        )

    def _heartbeat(self) -> messages.ConsumerGroupHeartbeatRequest:
        """Return what it has to tell: all after a lost answer, otherwise what has changed."""
        request = self._empty_heartbeat()
        if self._tells_all:
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [TOPIC]
        if self._tells_all or self._tells_owned:
            topic = self._around.cluster.nodes.controller.image.topics[TOPIC]
            owned = [request.TopicPartitions(topic.topic_id, sorted(self._positions))]
            request.topic_partitions = owned if self._positions else []
            self._history.give_up(self._owner, self._positions)
        return request

    def _check_may_be_fenced(self, error_code: int, safe_until_ms: int | None) -> None:
        now_ms = self._around.cluster.now_ms
        if safe_until_ms is None or self._history.may_be_removed_since(self._safe_since_ms):
            return
        if now_ms < safe_until_ms:
            violated(
                "live-members-stay",
                f"{self._name} got {ErrorCode(error_code).name} in epoch {self._epoch}, "
                f"{safe_until_ms - now_ms} ms before it may be fenced",
            )

    def _take_answer(
        self, response: messages.ConsumerGroupHeartbeatResponse, sent_ms: int, *, is_newest: bool
    ) -> None:
        if is_newest and response.member_epoch < self._epoch:
            violated(
                "member-epochs-grow",
                f"{self._name} was in epoch {self._epoch} and got {response.member_epoch}",
            )
        self._epoch = response.member_epoch
        self._tells_all = self._tells_owned = False
        if response.assignment is not None:
            self._take_assignment(response.assignment.topic_partitions)
        self._record(self._name, self._epoch, *self._positions)
        assert self._asked_ms is not None
        until_ms = min(sent_ms + SESSION_TIMEOUT_MS, self._asked_ms + REBALANCE_TIMEOUT_MS)
        self._safe_since_ms = sent_ms
        if not self._is_giving_up and not self._tells_owned:
            self._asked_ms = None
        if is_newest:
            self._safe_until_ms = until_ms
            now_ms, term = self._around.cluster.now_ms, Term(sent_ms, until_ms)
            self._history.add_owner(self._owner, self._epoch, self._positions, now_ms, term)

    def _take_assignment(
        self, topics: Iterable[messages.ConsumerGroupHeartbeatResponse.TopicPartitions]
    ) -> None:
        self._assigned = tuple(number for topic in topics for number in topic.partitions)
        if not (self._is_giving_up and self._is_drawn(IS_SLOW_SHARE)):
            self._take_assigned()

    def _take_assigned(self) -> None:
        """Own what is assigned, and nothing else; the next heartbeat says so."""
        self._positions = {number: self._positions.get(number) for number in self._assigned}
        self._tells_owned = True

    def _offset_request(self, partition: int, is_stable: bool) -> messages.OffsetFetchRequest:
        request = super()._offset_request(partition, is_stable)
        request.groups[0].member_id = self._member_id
        request.groups[0].member_epoch = self._epoch
        return request

"""A broker's ways to the other nodes: to a leader that it follows, and to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.controller.requests import IsrMember, PartitionAlteration
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.replica import IsrDecision
from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.controller import Controller
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import FetchParams, FetchPartition, FetchPartitionData, IsrProposal
    from broker_sim.runtime.links import Links

__all__ = ["ControllerLink", "LeaderLink"]

Result = TypeVar("Result")


class LeaderLink:
    """The `LeaderEndpoint` over links; mirrors `RemoteLeaderEndPoint`."""

    def __init__(self, broker_id: int, links: Links, brokers: Mapping[int, Broker]) -> None:
        self._broker_id = broker_id
        self._links = links
        self._brokers = brokers

    def fetch(
        self,
        leader_id: int,
        params: FetchParams,
        infos: Sequence[tuple[TopicPartition, FetchPartition]],
        on_response: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]]], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Send a fetch to the leader's broker."""
        self._links.call(
            self._broker_id,
            leader_id,
            lambda on_result: self._brokers[leader_id].replica_server.serve_fetch(
                params, infos, on_result
            ),
            on_response,
            on_failure,
        )

    def fetch_log_bounds(
        self,
        leader_id: int,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        on_response: Callable[[ErrorCode, int, int], None],
        on_failure: Callable[[], None],
    ) -> None:
        """Ask for the leader's log start and end offset."""

        def serve(on_result: Callable[[tuple[ErrorCode, int, int]], None]) -> None:
            self._brokers[leader_id].replica_server.serve_log_bounds(
                topic_partition, current_leader_epoch, on_result
            )

        self._links.call(
            self._broker_id, leader_id, serve, lambda bounds: on_response(*bounds), on_failure
        )


class ControllerLink:
    """The `ControllerChannel` over links, and the sender of ISR changes."""

    def __init__(
        self,
        broker_id: int,
        links: Links,
        controller: Controller,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._links = links
        self._controller = controller
        self._broker_epoch = broker_epoch

    def call(
        self, verb: Callable[[Controller], Result], on_result: Callable[[Result], None]
    ) -> None:
        """Run `verb(controller)` at the controller and `on_result` back here."""
        self._links.call(
            self._broker_id,
            CONTROLLER_ID,
            lambda send_result: send_result(verb(self._controller)),
            on_result,
            lambda: None,
        )

    def send_isr_changes(
        self,
        proposals: Sequence[IsrProposal],
        on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None],
    ) -> None:
        """Send AlterPartition; the answer comes in the order of the proposals."""
        broker_epoch = self._broker_epoch()
        alterations = [self._alteration(proposal, broker_epoch) for proposal in proposals]

        def verb(controller: Controller) -> tuple[ErrorCode, Sequence[IsrDecision]]:
            try:
                results = controller.alter_partition(self._broker_id, broker_epoch, alterations)
            except ApiError as error:
                return error.error_code, ()
            decisions = [
                IsrDecision(result.error_code)
                if result.state is None
                else IsrDecision(
                    result.error_code,
                    frozenset(result.state.isr),
                    result.state.leader_epoch,
                    result.state.partition_epoch,
                )
                for result in results
            ]
            return ErrorCode.NONE, decisions

        self.call(verb, lambda answer: on_answer(*answer))

    def _alteration(self, proposal: IsrProposal, broker_epoch: int) -> PartitionAlteration:
        partition, pending = proposal
        epochs = {**pending.proposed_epochs, self._broker_id: broker_epoch}
        return PartitionAlteration(
            partition.topic_id,
            partition.topic_partition.partition,
            pending.leader_epoch,
            pending.partition_epoch,
            [IsrMember(member, epoch) for member, epoch in epochs.items()],
        )

"""The link from a broker to the active controller; mirrors `NodeToControllerChannelManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.controller.requests import IsrMember, PartitionAlteration
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.replica import IsrDecision
from broker_sim.runtime.links import CONTROLLER_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.controller import Controller
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.replica import IsrProposal

Result = TypeVar("Result")


class ControllerLink:
    """Calls the controller over links, as the `ControllerChannel` of handlers and the sender of ISR changes."""

    def __init__(self, broker: BrokerContext, controller: Controller) -> None:
        self._broker_id = broker.broker_id
        self._broker = broker
        self._controller = controller

    def call(
        self,
        verb: Callable[[Controller], Result],
        on_result: Callable[[Result], None],
        on_refusal: Callable[[ApiError], None],
    ) -> None:
        """Run `verb(controller)` at the controller, then `on_result` or `on_refusal` at this broker.

        A verb that raises has changed no metadata: the controller commits at its end.
        """

        def attempt() -> Callable[[], None]:
            try:
                result = verb(self._controller)
            except ApiError as error:
                refusal = error
            except Exception as error:  # noqa: BLE001 - whatever the reason, the broker waits for a result
                message = f"the controller failed to serve {self._broker.process.name}"
                self._broker.process.report_error(message, error)
                refusal = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
            else:
                return lambda: on_result(result)
            return lambda: on_refusal(refusal)

        def serve(send_result: Callable[[Callable[[], None]], None]) -> None:
            send_result(attempt())

        def take(answer: Callable[[], None]) -> None:
            answer()

        self._broker.links.call(self._broker_id, CONTROLLER_ID, serve, take, lambda: None)

    def send_isr_changes(
        self, proposals: Sequence[IsrProposal], on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None]
    ) -> None:
        """Send AlterPartition; the decisions come back in the order of the proposals."""
        broker_epoch = self._broker.broker_epoch()
        alterations = [self._alteration(proposal, broker_epoch) for proposal in proposals]

        def verb(controller: Controller) -> list[IsrDecision]:
            results = controller.alter_partition(self._broker_id, broker_epoch, alterations)
            return [
                IsrDecision(result.error_code)
                if result.state is None
                else IsrDecision(
                    result.error_code,
                    isr=frozenset(result.state.isr),
                    leader_epoch=result.state.leader_epoch,
                    partition_epoch=result.state.partition_epoch,
                )
                for result in results
            ]

        self.call(
            verb, lambda decisions: on_answer(ErrorCode.NONE, decisions), lambda error: on_answer(error.error_code, ())
        )

    def _alteration(self, proposal: IsrProposal, broker_epoch: int) -> PartitionAlteration:
        partition, pending = proposal
        epochs = {**pending.proposed_epochs, self._broker_id: broker_epoch}
        return PartitionAlteration(
            partition.topic_id,
            partition.topic_partition.partition,
            leader_epoch=pending.leader_epoch,
            partition_epoch=pending.partition_epoch,
            new_isr=[IsrMember(member, epoch) for member, epoch in epochs.items()],
        )

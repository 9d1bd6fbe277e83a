"""Verbs on the requests of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import verb

if TYPE_CHECKING:
    from broker_sim.handlers.faults import Fault, InjectedFault

__all__ = ["RequestVerbs"]


class RequestVerbs(BaseVerbs):
    """What can be done to requests."""

    @verb(path="/inject")
    def inject(self, fault: Fault) -> InjectedFault:
        """Let a fault hit requests of clients from now on; returns a handle to it."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see `Verbs`

        if not isinstance(fault, FaultClass):
            raise TypeError(
                f"inject takes a Fault, such as Fault(api='Produce', delay_ms=100), not {fault!r}"
            )
        if fault.broker is not None:
            self.nodes.node(fault.broker)
        return self.nodes.faults.inject(fault)

    @verb("DELETE", "/inject/{fault_id}")
    def heal(self, fault_id: int | None = None) -> None:
        """Remove one injected fault, or all of them. LookupError if there is none of that id."""
        self.nodes.faults.heal(fault_id)

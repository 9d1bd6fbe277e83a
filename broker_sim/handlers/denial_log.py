"""Denied client operations, for tests; mirrors Kafka's audit log `kafka.authorizer.logger`.

As in Kafka, it has the resources that a client requested, not those left out of a list or of the
authorized operations.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from broker_sim_purgatory import Clock

LIMIT: Final = 10_000
"""Maximum number of denials that are kept."""
_log = get_logger(__name__)


class DenialStatus(NamedTuple):
    """One denial."""

    time_ms: int
    """Time in ms since the epoch."""
    broker: int
    principal: str
    """Principal, such as `User:billing`."""
    client_host: str
    client_id: str | None
    api: str
    """Kafka's name of the API, such as `Produce`."""
    operation: str
    """The denied operation, such as `WRITE`."""
    resource_type: str
    """The type of the resource, such as `TOPIC`."""
    resource: str
    """The resource's name."""
    rule: str
    """The rule that denies, as in Kafka's audit log: `DefaultDeny`, or an ACL."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return self._asdict()


class DenialsStatus(tuple[DenialStatus, ...]):
    """Denials in the order in which they came."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"denials": [denial.to_json() for denial in self]}


class DenialLog:
    """Keeps the last 10 000 denials. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self._kept: deque[DenialStatus] = deque(maxlen=LIMIT)

    def add(self, denial: DenialStatus, clock: Clock) -> None:
        """Keep the denial, and log it with the broker's time."""
        self._kept.append(denial)
        if _log.is_enabled_for_info:
            _log.bind(clock, node=f"broker-{denial.broker}").info(
                "denied",
                principal=denial.principal,
                host=denial.client_host,
                api=denial.api,
                operation=denial.operation,
                resource=f"{denial.resource_type}:{denial.resource}",
                rule=denial.rule,
            )

    def forget(self) -> None:
        """Drop the kept denials."""
        self._kept.clear()

    def find(self, principal: str | None) -> DenialsStatus:
        """Return the denials of a principal; of all principals with None."""
        return DenialsStatus(each for each in self._kept if principal in (None, each.principal))

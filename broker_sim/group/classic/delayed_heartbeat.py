"""A member's session, which ends unless something is heard of it; mirrors `DelayedHeartbeat` of Kafka 3."""

from __future__ import annotations

from broker_sim.group.delayed_timeout import DelayedTimeout


class DelayedHeartbeat(DelayedTimeout):
    """Expires at the end of the session timeout unless the member is heard of before.

    Each request of the member lets it wait its whole delay again. Where an observer is told of each wait,
    the request completes it instead, and the next one is parked.
    """

    __slots__ = ()

    api = "Heartbeat"

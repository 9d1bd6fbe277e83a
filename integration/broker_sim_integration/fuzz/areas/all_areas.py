"""The areas by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.fuzz.areas import (
    elections,
    groups,
    log,
    replication,
    share_groups,
    share_kinds,
    share_states,
    streams_groups,
    topics,
    transactions,
)

if TYPE_CHECKING:
    from broker_sim_integration.fuzz.areas.area import Area

AREAS: Final[dict[str, Area]] = {
    one.AREA.name: one.AREA
    for one in (
        groups,
        transactions,
        log,
        topics,
        share_groups,
        share_states,
        share_kinds,
        streams_groups,
        replication,
        elections,
    )
}
COMPARED_ELSEWHERE: Final = {"acls": "ACLs are compared in a table of their own, integration/acls"}


def areas_named(text: str) -> list[Area]:
    """Return the areas of a comma-separated list. Raises ValueError with one line."""
    areas = []
    for name in text.split(","):
        if name in COMPARED_ELSEWHERE:
            raise ValueError(f"--areas {name}: {COMPARED_ELSEWHERE[name]}")
        if name not in AREAS:
            raise ValueError(f"--areas {name}: choose from {', '.join(AREAS)}")
        areas.append(AREAS[name])
    return areas

"""How often kinds of faults and plots are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.plots import PLOTS
from broker_sim.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


def weights_of(faults: Iterable[str] | Mapping[str, float] | None) -> dict[str, float]:
    """Return how often each kind and plot is drawn, in the order of `KINDS` and `PLOTS`.

    None stands for all kinds that have a weight; names have their usual weights, plots 1; a mapping has weights of
    its own.
    Raises ValueError for an unknown kind, a negative weight, or none.
    """
    if faults is None:
        return {name: kind.weight for name, kind in KINDS.items() if kind.weight}
    weights = (
        dict(faults)
        if isinstance(faults, Mapping)
        else {name: (KINDS[name].weight if name in KINDS else 0) or 1 for name in faults}
    )
    names = (*KINDS, *PLOTS)
    unknown = sorted(set(weights) - set(names))
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise ValueError(f"there is no fault {unknown[0]!r}{hint}; choose from {', '.join(names)}")
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError(f"faults={weights}: give weights above 0")
    return {name: weights[name] for name in names if weights.get(name)}


def kinds_beside_a_command() -> list[str]:
    """Return the kinds that can happen in real time."""
    return [name for name, kind in KINDS.items() if kind.beside_a_command]


def weights_beside_a_command(faults: Iterable[str] | None) -> dict[str, float]:
    """Return how often each kind is drawn in real time: those of clusters, unless some are named.

    Raises ValueError as `weights_of`, and for a kind that cannot happen then.
    """
    possible = kinds_beside_a_command()
    names = (
        [name for name in possible if not KINDS[name].is_of_workers and KINDS[name].weight]
        if faults is None
        else list(faults)
    )
    for name in names:
        if name in {*KINDS, *PLOTS} and name not in possible:
            raise ValueError(f"{name} happens in virtual time only; beside a command choose from {', '.join(possible)}")
    return weights_of(names)

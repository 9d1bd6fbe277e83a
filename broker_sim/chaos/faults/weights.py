"""The weights with which kinds of faults and plots are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.plots import PLOT_WEIGHTS, PLOTS
from broker_sim.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


def weights_of(faults: Iterable[str] | Mapping[str, float] | None) -> dict[str, float]:
    """Return the weight of each kind and plot, in the order of `KINDS` and `PLOTS`.

    None stands for all that have a default weight. Names get their default weight, or 1 if they have none; a mapping
    has explicit weights. Raises ValueError for an unknown kind, a negative weight, or no weight above 0.
    """
    usual = {**{name: kind.weight for name, kind in KINDS.items() if kind.weight}, **PLOT_WEIGHTS}
    if faults is None:
        faults = usual
    weights = dict(faults) if isinstance(faults, Mapping) else {name: usual.get(name, 1) for name in faults}
    names = (*KINDS, *PLOTS)
    unknown = sorted(set(weights) - set(names))
    if unknown:
        hint = did_you_mean(unknown[0], names)
        raise ValueError(f"unknown fault {unknown[0]!r}{hint}; choose from {', '.join(names)}")
    if any(weight < 0 for weight in weights.values()) or not sum(weights.values()):
        raise ValueError(f"faults={weights}: weights must not be negative, and one must be above 0")
    return {name: weights[name] for name in names if weights.get(name)}


def kinds_beside_a_command() -> list[str]:
    """Return the kinds that are possible in real time."""
    return [name for name, kind in KINDS.items() if kind.beside_a_command]


def weights_beside_a_command(faults: Iterable[str] | None) -> dict[str, float]:
    """Return the weights of kinds in real time, by default of those that affect the cluster.

    Raises ValueError as `weights_of`, and for a kind that is impossible in real time.
    """
    possible = kinds_beside_a_command()
    names = (
        [name for name in possible if not KINDS[name].is_of_workers and KINDS[name].weight]
        if faults is None
        else list(faults)
    )
    for name in names:
        if name in {*KINDS, *PLOTS} and name not in possible:
            raise ValueError(f"{name} is possible in virtual time only; choose from {', '.join(possible)}")
    return weights_of(names)

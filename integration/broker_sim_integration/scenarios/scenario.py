"""The type of a scenario, and the decorator that marks a function as one.

A scenario is a function that takes a `ClusterUnderTest` and yields observations. Its name is its
claim, its docstring the description. The decorator only marks it; the catalogue collects the marked
functions from the modules that it lists.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from broker_sim_integration.broker_verbs import Fault, Reading
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

    ScenarioFunction = Callable[[ClusterUnderTest], Iterator[Observation]]

_MARK: Final = "__scenario__"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A marked function, with the cluster that it needs."""

    name: str
    family: str
    description: str
    topology: str
    configs: tuple[tuple[str, str], ...]
    """Broker configurations other than Kafka's defaults; equal ones share a cluster."""
    needs: frozenset[Fault | Reading]
    function: ScenarioFunction


def scenario(
    *,
    topology: str = "1 partition x 3 replicas",
    configs: Mapping[str, str] | None = None,
    needs: set[Fault | Reading] | None = None,
) -> Callable[[ScenarioFunction], ScenarioFunction]:
    """Mark a function as a scenario."""

    def mark(function: ScenarioFunction) -> ScenarioFunction:
        description = inspect.getdoc(function) or ""
        marked = Scenario(
            name=function.__name__,
            family=function.__module__.rsplit(".", 1)[-1],
            description=" ".join(description.split()),
            topology=topology,
            configs=tuple(sorted((configs or {}).items())),
            needs=frozenset(needs or ()),
            function=function,
        )
        setattr(function, _MARK, marked)
        return function

    return mark


def scenarios_of(module: ModuleType) -> list[Scenario]:
    """Return the scenarios defined in a module, in the order of the source text."""
    marked = (getattr(member, _MARK, None) for member in vars(module).values())
    return [found for found in marked if found is not None and found.function.__module__ == module.__name__]

"""The catalogue as a Markdown page: `broker-sim-compare list --markdown`."""

from __future__ import annotations

import importlib
import inspect
from itertools import groupby
from typing import TYPE_CHECKING

from broker_sim_integration.scenarios.catalogue import CATALOGUE

if TYPE_CHECKING:
    from broker_sim_integration.scenarios.scenario import Scenario

INTRODUCTION = """\
# Scenarios

Made by `broker-sim-compare list --markdown`. Every scenario runs on a real Kafka and
on the simulator and cannot know which of them it is. {count} scenarios in {families} families.

Times: *at once* is without waiting, *at N ms* when the request's timeout is over, *on event* when
something happened that the response waited for. An observation states when it was due, or why no
time is claimed; waits and wake-ups of every kind are repeated and judged by their distributions.
"""


def catalogue_markdown() -> str:
    """Return the catalogue as Markdown: a section per family and a row per scenario."""
    families = [(name, list(group)) for name, group in groupby(CATALOGUE, lambda s: s.family)]
    parts = [INTRODUCTION.format(count=len(CATALOGUE), families=len(families))]
    for family, scenarios in families:
        module = importlib.import_module(scenarios[0].function.__module__)
        first_line = (inspect.getdoc(module) or "").splitlines()[0]
        parts.append(f"\n## {family}\n\n{first_line}\n\n")
        parts.append("| scenario | what is seen | topology | broker configs | needs |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_row(found) for found in scenarios]
    return "".join(parts)


def _row(found: Scenario) -> str:
    configs = ", ".join(f"`{key}={value}`" for key, value in found.configs)
    needs = ", ".join(sorted(found.needs))
    description = found.description.replace("|", "\\|")
    return f"| `{found.name}` | {description} | {found.topology} | {configs} | {needs} |\n"

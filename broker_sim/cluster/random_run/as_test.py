"""Prints a schedule as a test that can be pasted into a file and run."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

from broker_sim.cluster.random_run.faults.action import NODE_NAMES, Action
from broker_sim.cluster.random_run.schedule import Producer, Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["as_test"]

IMPORTED = (*sorted(NODE_NAMES.values()), "Action", "Producer", "Schedule", "run_schedule")


def as_test(schedule: Schedule, invariant: str) -> str:
    """Return the source of a test that fails as long as the schedule does; fields with defaults are left out."""
    lines = [
        "run_schedule(",
        "    Schedule(",
        *(f"        {each}" for each in _arguments(schedule)),
    ]
    body = "\n".join(f"    {line}" for line in [*lines, "    )", ")"])
    names = [name for name in IMPORTED if re.search(rf"\b{name}\b", body)]
    return (
        f"from broker_sim.cluster.random_run import {', '.join(names)}\n\n\n"
        f"def test_seed_{schedule.seed}_keeps_{invariant.replace('-', '_')}():\n{body}\n"
    )


def _arguments(schedule: Schedule) -> Iterator[str]:
    for field in fields(schedule):
        value = getattr(schedule, field.name)
        if field.default is not MISSING and value == field.default:
            continue
        if isinstance(value, tuple):
            yield f"{field.name}=("
            for each in value:
                yield f"    {_item(each)},"
            yield "),"
        else:
            yield f"{field.name}={value!r},"


def _item(item: Action | Producer | int) -> str:
    if isinstance(item, Action):
        return _action(item)
    return _producer(item) if isinstance(item, Producer) else str(item)


def _producer(producer: Producer) -> str:
    given = [
        f"{name}={value!r}"
        for name, value in producer._asdict().items()
        if value != producer._field_defaults[name]
    ]
    return f"Producer({', '.join(given)})"


def _action(action: Action) -> str:
    nodes = [NODE_NAMES.get(node, str(node)) for node in action.on]
    on = f"({', '.join(nodes)}{',' if len(nodes) == 1 else ''})"
    text = f'Action({action.at_ms}, "{action.kind}", {on}'
    if action.for_ms:
        text += f", for_ms={action.for_ms}"
    if action.value:
        text += f", value={action.value}"
    return f"{text})"

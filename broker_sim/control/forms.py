"""Descriptions of verbs, from which a page makes a form for each and calls it."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from broker_sim.control.verb import verbs_of
from broker_sim.handlers.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.control.verb import Verb


def forms_of(face: type) -> list[dict[str, Any]]:
    """Return the verbs of a face with their addresses, their first lines and their parameters, as plain values."""
    return [_form(each) for each in verbs_of(face).values()]


def takes_fault(verb: Verb[..., Any]) -> bool:
    """Whether the fields of its form are those of a `Fault`."""
    return any(verb.annotation(name) == "Fault" for name in verb.parameters)


def _form(verb: Verb[..., Any]) -> dict[str, Any]:
    parameters: Iterable[inspect.Parameter] = verb.parameters.values()
    if takes_fault(verb):
        parameters = inspect.signature(Fault).parameters.values()
    return {
        "name": verb.name,
        "method": verb.address.method,
        "path": verb.address.path,
        "text": (verb.__doc__ or "").partition("\n")[0],
        "parameters": [
            {
                "name": each.name,
                "field": verb.address.fields.get(each.name, each.name),
                "type": str(each.annotation),
                "required": each.default is inspect.Parameter.empty,
            }
            for each in parameters
        ],
    }

"""What `broker-sim ctl` prints when a verb is done: a sentence, or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["print_answer"]


def print_answer(verb: str, given: Mapping[str, Any], answer: Any) -> None:
    """Print the answer of the control port to a verb that was asked with the arguments `given`."""
    if verb in {"status", "purgatory"}:
        from broker_sim.cli import tables  # noqa: PLC0415 - brings rich along

        (tables.print_status if verb == "status" else tables.print_purgatory)(answer)
    else:
        click.echo(_sentence(verb, given, answer))


def _sentence(verb: str, given: Mapping[str, Any], answer: Any) -> str:
    word = verb.replace("_", "-")
    if isinstance(answer, str):
        return answer.rstrip()
    if "broker_id" in given:
        return f"{word} broker {answer['id']}: {answer['state']}"
    match verb:
        case "set_link":
            return f"the link from {given['source']} to {given['target']} is {_link_state(given)}"
        case "inject":
            return f"fault {answer['id']} hits {answer['api']}"
        case "heal":
            return f"{len(answer['faults'])} faults left"
        case "create_topic":
            return f"topic {answer['name']} exists"
    return f"{word}: done"


def _link_state(given: Mapping[str, Any]) -> str:
    if given.get("drop"):
        return "cut"
    delay_ms = given.get("delay_ms")
    return f"slower by {delay_ms} ms" if delay_ms else "whole"

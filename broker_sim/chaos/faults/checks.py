"""Validates actions: their kind, their targets and their value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.faults.action import BROKERS, CONTROLLER, WORKERS, ScheduleError, is_broker
from broker_sim.chaos.faults.cluster_faults import ROLES, request_fault
from broker_sim.chaos.faults.kinds import KINDS, ON_REQUESTS
from broker_sim.chaos.faults.plots import PLOTS
from broker_sim.errors import did_you_mean

if TYPE_CHECKING:
    from broker_sim.chaos.faults.action import Action
    from broker_sim.chaos.faults.kinds import Kind

_EXAMPLES: Final = {
    "worker": "a worker, such as worker-1",
    "workers": "a worker, such as worker-1, or workers",
    "broker": "a broker, such as broker-1",
    "brokers": "a broker, such as broker-1",
    "link": "a link, such as broker-1 controller",
}


def check_action(action: Action) -> Kind:
    """Return the kind of an action. Raises ScheduleError for an invalid action."""
    kind = KINDS.get(action.kind)
    if kind is None:
        if action.kind in PLOTS:
            raise ScheduleError(f"{action}: {action.kind} is a plot, which is drawn: name it in --faults or faults=")
        hint = did_you_mean(action.kind, KINDS)
        raise ScheduleError(f"{action}: unknown kind {action.kind!r}{hint}; kinds: {', '.join(KINDS)}")
    if not _has_targets(action, kind):
        raise ScheduleError(f"{action}: add {_EXAMPLES[kind.on]}")
    if not _has_value(action, kind):
        example = f"add a value, such as value={kind.values[0]}" if kind.values else "leave out the value"
        raise ScheduleError(f"{action}: {example}")
    if action.kind in ON_REQUESTS:
        _check_fault(action)
    return kind


def _has_targets(action: Action, kind: Kind) -> bool:
    """Whether the action names as many workers, brokers or nodes as its kind needs."""
    names = action.on
    if kind.on in {BROKERS, WORKERS} and names in {(), (kind.on,)}:
        return True
    if kind.has_far_end:
        names = names[:1]
    if len(names) < kind.at_least or (len(names) > kind.at_least and not kind.several):
        return False
    return all(_is_a(name, kind.on) for name in names)


def _has_value(action: Action, kind: Kind) -> bool:
    """Whether the action has a value if its kind needs one: a number, if the kind has numbers."""
    if not kind.values:
        return not action.value
    if not kind.values[0].removeprefix("-").isdecimal():
        return action.value in kind.values if kind.on == WORKERS else bool(action.value)
    if kind.on == WORKERS:
        return bool(int(action.value)) if action.value.removeprefix("-").isdecimal() else False
    digits = action.value.removeprefix("-")
    if kind.on == "worker":  # seconds may have fractions
        digits = digits.replace(".", "", 1)
    return digits.isdecimal()


def _check_fault(action: Action) -> None:
    """Raise ScheduleError for an API that is not served, or an error that its responses cannot contain."""
    try:
        request_fault(action.kind, None, action.value)
    except ValueError as impossible:
        raise ScheduleError(f"{action}: {impossible}") from None


def _is_a(name: str, place: str) -> bool:
    if place == "link" and name == CONTROLLER:
        return True
    if place not in {"worker", WORKERS}:
        return name in ROLES or is_broker(name)
    stem, _, number = name.partition("-")
    return stem == "worker" and number.isdecimal()

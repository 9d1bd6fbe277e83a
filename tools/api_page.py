"""Writes docs/reference/api.md from the public names and their docstrings: `python -m tools.api_page`."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import broker_sim
from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
HEAD = """# The Python API

`from broker_sim import ...` gives these names. This page is made from their docstrings by
`python -m tools.api_page`; see [cluster.md](../start/cluster.md) for a tour with examples, and
[control.md](../operate/control.md) for the same verbs over HTTP and in the terminal.
"""
VERBS = "broker_sim.cluster.verbs"
INTERNAL = ("bind_verb", "nodes", "observer")
HANDLES = (
    *("ClientHost", "HookedRequest", "InjectedFault", "PendingResponse", "Scope", "SimulatedCluster"),
    *("SimulatedDisk", "TraceSink", "VirtualClient"),
)
"""Classes whose objects a cluster returns; users do not construct them."""
ARGUMENTS = ("ControlServer", "SimulatedDisk")
"""Classes whose objects are passed to a cluster; users call none of their methods."""
FACES = ("Cluster", "AsyncCluster", "VirtualCluster")


def build_page() -> str:
    """Return the page's text."""
    names = [name for name in broker_sim.__all__ if isinstance(getattr(broker_sim, name), type)]
    others = sorted(set(names) - set(FACES), key=_order)
    parts = [HEAD]
    for name in FACES:
        parts += _class(name, with_verbs=name == "Cluster")
    for name in others:
        parts += _class(name, with_verbs=False)
    parts.append(f"## GivenValue\n\nThe value of a configuration: `{broker_sim.GivenValue}`.\n")
    return "\n".join(parts)


def _order(name: str) -> tuple[bool, str]:
    return issubclass(getattr(broker_sim, name), Exception), name


def _class(name: str, *, with_verbs: bool) -> Iterator[str]:
    cls = getattr(broker_sim, name)
    yield f"## {name}\n"
    if not issubclass(cls, (Exception, Enum)) and name not in HANDLES:
        yield f"```python signature\n{_signature(name, cls)}\n```\n"
    yield f"{inspect.getdoc(cls)}\n"
    if issubclass(cls, Enum) or name in ARGUMENTS:
        return
    for member, value in _members(cls, with_verbs=with_verbs):
        yield f"- `{_member_signature(member, value)}`: {_first_paragraph(value)}"
    yield ""
    if with_verbs:
        yield "`AsyncCluster` and `VirtualCluster` have the same verbs, and `leader` and what follows it.\n"


def _members(cls: type, *, with_verbs: bool) -> Iterator[tuple[str, Any]]:
    seen = set(INTERNAL)
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] not in {"broker_sim", "broker_sim_purgatory"}:
            continue
        if issubclass(base, BaseVerbs) and base.__module__.startswith(VERBS) and not with_verbs:
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in seen or dataclasses.is_dataclass(value):
                continue
            seen.add(name)
            if isinstance(value, (property, Verb)) or inspect.isfunction(value):
                yield name, value


def _member_signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        return name
    function = value.method if isinstance(value, Verb) else value
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    prefix = "async " if inspect.iscoroutinefunction(function) and not isinstance(value, Verb) else ""
    return f"{prefix}{name}{signature.replace(parameters=parameters)}".replace("'", "")


def _signature(name: str, cls: type) -> str:
    signature = inspect.signature(cls)
    parameters = ",\n    ".join(_parameters(signature))
    parameters = re.sub(r"ForwardRef\((.*?)\)", r"\1", parameters)
    return f"{name}(\n    {parameters},\n)" if parameters else f"{name}()"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    starred = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield (
            str(parameter).replace("'", "")
            if parameter.default is inspect.Parameter.empty
            else (f"{parameter.name}: {parameter.annotation} = {parameter.default!r}")
        )


def _first_paragraph(value: Any) -> str:
    function = value.method if isinstance(value, Verb) else value
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(build_page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")

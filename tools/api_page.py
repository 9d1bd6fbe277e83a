"""Writes three pages from the public names and their docstrings: `python -m tools.api_page`.

The pages are api.md, purgatory.md (the library in `purgatory`) and http.md in docs/reference.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import broker_sim_purgatory

import broker_sim
from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = Path(__file__).parents[1] / "docs" / "reference"
HEAD = """# The Python API

`from broker_sim import ...` gives these names. This page is made from their docstrings by
`python -m tools.api_page`; see [A cluster in Python](../start/cluster.md) for a tour with examples, and
[Controlling a running cluster](../operate/control.md) for the same verbs over HTTP and in the terminal.
"""
PURGATORY_HEAD = """# The purgatory's API

`from broker_sim_purgatory import ...` gives these names; with broker-sim `broker_sim.purgatory` does too. This page is
made from their docstrings by `python -m tools.api_page`; see [the purgatory and the timing wheel](../how/purgatory.md)
for what they are for, with examples.
"""
HTTP_HEAD = """# HTTP and `broker-sim ctl`

Every verb of a [cluster](api.md#cluster) is a request to the control port and a subcommand of `broker-sim ctl`,
called as the path ends unless another name stands there; its `--help` has its options. This page is made from their
docstrings by `python -m tools.api_page`; see [Control](../operate/control.md) for examples, answers and errors. A
field with a default may be left out of the body.

| request | fields of the body | what it does |
|---|---|---|
"""
PURGATORY_INTERNAL = (
    "locked_add",
    "locked_placements",
    "locked_statistics",
    "first_changed",
    "hand_over",
    "read_wheels",
)
PROGRAM_INTERNAL = (
    *("is_alone", "new_image", "after_step", "add_child", "signal_process", "on_end", "on_failure"),
    *("connect", "bind", "serve", "listen"),
)
VERBS = "broker_sim.cluster.verbs"
INTERNAL = (
    "bind_verb",
    "nodes",
    "observer",
    "on_opened",
    "on_arrival",
    "on_connected",
    "next_number",
    *PROGRAM_INTERNAL,
    *PURGATORY_INTERNAL,
)
HANDLES = (
    *("ClientHost", "HookedRequest", "InjectedFault", "PendingResponse", "Program", "Scope"),
    *("SimulatedCluster", "SimulatedDisk", "TraceSink", "VirtualClient"),
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
        parts += _class(name, getattr(broker_sim, name), with_verbs=name == "Cluster")
    for name in others:
        parts += _class(name, getattr(broker_sim, name), with_verbs=False)
    parts.append(f"## GivenValue\n\nThe value of a configuration: `{broker_sim.GivenValue}`.\n")
    return "\n".join(parts)


def build_purgatory_page() -> str:
    """Return the text of the purgatory's page."""
    parts = [PURGATORY_HEAD]
    for name in broker_sim_purgatory.__all__:
        value = getattr(broker_sim_purgatory, name)
        if isinstance(value, type):
            parts += _class(name, value, with_verbs=False)
        elif inspect.isfunction(value):
            parts.append(f"## {_member_signature(name, value)}\n\n{inspect.getdoc(value)}\n")
    # Its modules evaluate their annotations; the page shows them as written.
    prefixes = r"\b(?:broker_sim_purgatory|collections|threading|asyncio|contextvars)\.[a-z_.]*(?=[A-Z])|~_?"
    return re.sub(prefixes, "", "\n".join(parts))


def build_http_page() -> str:
    """Return the text of the page of HTTP requests: a row for each verb, by path."""
    verbs = [value for _, value in inspect.getmembers_static(broker_sim.Cluster) if isinstance(value, Verb)]
    verbs.sort(key=lambda verb: (verb.address.path, verb.address.method))
    return HTTP_HEAD + "".join(map(_http_row, verbs))


def _http_row(verb: Verb[Any, Any]) -> str:
    method, path, names = verb.address
    fields = ", ".join(
        f"`{names.get(name, name)}`"
        if parameter.default is parameter.empty
        else f"`{names.get(name, name)}={json.dumps(parameter.default)}`"
        for name, parameter in verb.parameters.items()
        if f"{{{name}}}" not in path
    )
    if verb.name == "inject":
        fields = "those of [`Fault`](api.md#fault)"
    what = _first_paragraph(verb).partition(". Raises")[0].removesuffix(".")
    command = "" if path.endswith(f"/{verb.word}") else f" (`ctl {verb.word}`)"
    return f"| `{method} {path}` | {fields} | {what}{command} |\n"


def _order(name: str) -> tuple[bool, str]:
    return issubclass(getattr(broker_sim, name), Exception), name


def _class(name: str, cls: type, *, with_verbs: bool) -> Iterator[str]:
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
        if (
            base.__module__.partition(".")[0] not in {"broker_sim", "broker_sim_purgatory"}
            or base.__name__ == "TimerTaskEntry"
        ):
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
    parameters = re.sub(r"ForwardRef\('?(.*?)'?\)", r"\1", parameters)
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
            else f"{parameter.name}: {_annotation(parameter)} = {parameter.default!r}"
        )


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return "object"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _first_paragraph(value: Any) -> str:
    function = value.method if isinstance(value, Verb) else value
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    for page, build in {"api": build_page, "purgatory": build_purgatory_page, "http": build_http_page}.items():
        (PAGES / f"{page}.md").write_text(build(), encoding="utf-8")
        sys.stdout.write(f"wrote {page}\n")

"""Links to the playground: an address that carries a failing test with its program, its settings and its seed.

In a browser `tools/playground/site/link.js` reads what stands behind the `#`; a server is not told of it.
"""

from __future__ import annotations

import ast
import importlib
import json
import zlib
from base64 import urlsafe_b64encode
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.search import NamedTest
from broker_sim.chaos.settings import settings_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

CARRIED: Final = ("faults", "order", "duration_s", "workers", "brokers")
"""Settings that the playground has fields for; what the marker says stands in the program."""
MOST_CHARACTERS: Final = 30_000
"""Maximum length of a link."""


class NoLinkError(ValueError):
    """A test that no link can carry; the text is one line."""


def link_to(playground: str, test: NamedTest, seed: int) -> str:
    """Return the address that opens the test in the playground at that address. Raises NoLinkError."""
    module, _, function = test.name.partition(":")
    if "." in module:
        raise NoLinkError(f"no link: {module} is part of a package, and a link carries modules of one folder")
    state = {
        "files": dict(_files(module)),
        "module": module,
        "test": function,
        "settings": _settings(test),
        "seed": seed,
    }
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    link = f"{playground.partition('#')[0]}#chaos={urlsafe_b64encode(packed).decode().rstrip('=')}"
    if len(link) > MOST_CHARACTERS:
        raise NoLinkError(f"no link: it would have {len(link)} characters; {MOST_CHARACTERS} are allowed")
    return link


def _files(first: str) -> Iterator[tuple[str, str]]:
    """Yield the test's module and those of its folder that it imports, by name."""
    folder = Path(importlib.import_module(first).__file__ or "").parent
    names, seen = [first], {first}
    while names:
        name = names.pop(0)
        text = (folder / f"{name}.py").read_text("utf-8")
        yield name, text
        for each in _imported(text):
            if each not in seen and (folder / f"{each}.py").is_file():
                seen.add(each)
                names.append(each)


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def _settings(test: NamedTest) -> dict[str, Any]:
    """Return the settings that differ from what the test's marker says, None for the others."""
    usual = NamedTest.of(test.name).settings
    names = {each.name for each in fields(usual) if each.repr and each.init}
    changed = {name for name in names if getattr(test.settings, name) != getattr(usual, name)} - {"schedule"}
    if others := sorted(changed - set(CARRIED)):
        options = ", ".join(settings_by_name()[name].option for name in others)
        raise NoLinkError(f"no link: it cannot carry {options}; say it in the test's marker")
    return {name: _plain(getattr(test.settings, name)) if name in changed else None for name in CARRIED}


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else list(value)

"""Links to the playground: addresses that contain a failing test with its program, its settings and its seed.

In a browser `tools/playground/site/link.js` reads the part after the `#`, which is never sent to a server.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import zlib
from base64 import urlsafe_b64encode
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim.chaos.search import MARKER, NamedTest
from broker_sim.chaos.settings import settings_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LINKED_SETTINGS: Final = ("faults", "order", "duration_s", "workers", "brokers")
"""Settings that a link can contain, because the playground has fields for them; others stay in the marker."""
MAX_CHARACTERS: Final = 30_000
"""Maximum length of a link."""


class NoLinkError(ValueError):
    """A test that does not fit in a link; the text is one line."""


def link_to(playground: str, test: NamedTest, seed: int) -> str:
    """Return a link that opens the test in the playground at that address. Raises NoLinkError."""
    module, _, function = test.name.partition(":")
    _check_module(module)
    folder = Path(importlib.import_module(module).__file__ or "").parent
    return _link(playground, folder, module, function, _settings(test), seed)


def link_to_function(playground: str, function: Callable[..., object], seed: int) -> str:
    """Return a link that opens a test function with a marker `chaos` of its own. Raises NoLinkError."""
    module = function.__module__
    _check_module(module)
    others = sorted({*inspect.signature(function).parameters} - {"chaos"})
    if "." in function.__qualname__ or others:
        what = f"takes {', '.join(others)}" if others else "is a method"
        raise NoLinkError(f"no link: {function.__qualname__} {what}; a link needs a function of chaos alone")
    if not any(mark.name == MARKER for mark in getattr(function, "pytestmark", ())):
        raise NoLinkError(f"no link: mark {function.__name__} itself with @pytest.mark.chaos, not its module")
    folder = Path(inspect.getsourcefile(function) or "").parent
    return _link(playground, folder, module, function.__name__, {}, seed)


def line_of(link: Callable[[], str]) -> str:
    """Return the line of a report with the link, or with the reason why there is none."""
    try:
        return f"open it in a browser: {link()}"
    except NoLinkError as error:
        return str(error)


def _check_module(module: str) -> None:
    if "." in module:
        raise NoLinkError(f"no link: {module} is part of a package, and a link can contain only modules of one folder")


def _link(playground: str, folder: Path, module: str, function: str, settings: Mapping[str, Any], seed: int) -> str:
    files = imported_files(module, lambda name: _text_of(folder / f"{name}.py"))
    link = f"{playground.partition('#')[0]}{fragment(files, module, function, settings, seed)}"
    if len(link) > MAX_CHARACTERS:
        raise NoLinkError(f"no link: it would have {len(link)} characters; {MAX_CHARACTERS} are allowed")
    return link


def fragment(
    files: Mapping[str, str], module: str, test: str, settings: Mapping[str, Any] | None = None, seed: int | None = None
) -> str:
    """Return the part of a link from the `#` on; `files` are the texts of modules by name."""
    state = {"files": files, "module": module, "test": test, "settings": settings or {}, "seed": seed}
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(json.dumps(state).encode()) + packer.flush()
    return f"#chaos={urlsafe_b64encode(packed).decode().rstrip('=')}"


def imported_files(first: str, text_of: Callable[[str], str | None]) -> dict[str, str]:
    """Return the texts of a module and its imports, by name, as far as `text_of(name)` has them."""
    names, files = [first], {}
    while names:
        name = names.pop(0)
        text = None if name in files else text_of(name)
        if text is not None:
            files[name] = text
            names += _imported(text)
    return files


def _text_of(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def _settings(test: NamedTest) -> dict[str, Any]:
    """Return the settings that differ from the test's marker, and None for the others."""
    usual = NamedTest.of(test.name).settings
    names = {each.name for each in fields(usual) if each.repr and each.init}
    changed = {name for name in names if getattr(test.settings, name) != getattr(usual, name)} - {"schedule"}
    if others := sorted(changed - set(LINKED_SETTINGS)):
        options = ", ".join(settings_by_name()[name].option for name in others)
        raise NoLinkError(f"no link: it cannot contain {options}; set them in the test's marker")
    return {name: _plain(getattr(test.settings, name)) if name in changed else None for name in LINKED_SETTINGS}


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else list(value)

"""Prepares a module of somebody else as soon as the program has imported it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, prepare: Callable[[Any], None]) -> None:
    """Call `prepare` with the module: now if it is imported, otherwise once it is executed."""
    module = sys.modules.get(name)
    if module is not None:
        prepare(module)
    elif not any(isinstance(each, _Finder) and each.name == name for each in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, prepare))


class _Finder:
    """Finds one module as all others do, once."""

    def __init__(self, name: str, prepare: Callable[[Any], None]) -> None:
        self.name = name
        self._prepare = prepare

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return how to import the module; None for all others."""
        del path, target
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._prepare)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, prepare: Callable[[Any], None]) -> None:
        self._loader = loader
        self._prepare = prepare

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._prepare(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # of the module: its resources and its source

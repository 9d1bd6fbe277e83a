"""A mini Kafka cluster in Python that waits, completes and times out exactly as a real one.

`Cluster` runs it in real time in a thread of its own, `AsyncCluster` on your event loop,
`VirtualCluster` in virtual time. `__init__.pyi` lists all names; each is imported on first use.
"""

import ast
import pkgutil
from importlib import import_module
from typing import Any

_LIST = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
_HOMES = {name.name: node.module for node in _LIST.body if isinstance(node, ast.ImportFrom) for name in node.names}
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the one list of names is __init__.pyi


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

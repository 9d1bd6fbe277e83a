"""The version of a scenario: a hash of everything that its recorded observations depend on.

That is the whole module of the scenario, because its constants and helpers decide what is observed, the folder
`support` beside it, and the code that all scenarios share: clients, cluster under test, helpers, normaliser,
judgement. Docstrings, comments and layout do not count. The hash is equal on all versions of Python.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_sim_integration.scenarios.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_integration.scenarios.scenario import Scenario

ROOT: Final = Path(__file__).parents[1]
SHARED: Final = (
    "broker_verbs.py",
    "clients",
    "cluster_under_test",
    "comparison",
    "observations.py",
    "reference/clusters/node_config.py",
    "scenarios/helpers",
    "scenarios/scenario.py",
)
"""Files and folders of `integration` that every scenario depends on."""
NOT_SHARED: Final = frozenset(
    f"comparison/{name}.py" for name in ("differences", "drift", "expected_time", "reader_waits", "recorded", "version")
)
"""Modules that only store, read or explain observations."""
SUPPORT: Final = "support"
"""The folder of code that only the scenarios beside it share."""
LENGTH: Final = 12


def scenario_version(scenario: Scenario) -> str:
    """Return a short hash; a recording of the scenario with another hash is not valid for it."""
    source = inspect.getsourcefile(scenario.function)
    assert source is not None
    module = Path(source)
    support = sorted((module.parent / SUPPORT).glob("*.py"))
    return _hashed((_module(module), *map(_module, support), _shared()))


def catalogue_version(scenarios: Iterable[Scenario] = CATALOGUE) -> str:
    """Return a short hash of the versions of these scenarios."""
    return _hashed(f"{scenario.name} {scenario_version(scenario)}" for scenario in scenarios)


def outline(source: str) -> str:
    """Return the syntax tree of the Python text `source` without docstrings, as text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return _shape(tree)


@cache
def _module(path: Path) -> str:
    return _hashed([outline(path.read_text(encoding="utf-8"))])


@cache
def _shared() -> str:
    paths = [ROOT / name for name in SHARED]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    named = {file.relative_to(ROOT).as_posix(): file for file in files}
    return _hashed(f"{name} {_module(named[name])}" for name in sorted(named.keys() - NOT_SHARED))


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _shape(value: object) -> str:
    """Return a node as text; `ast.dump` has fields that differ between versions of Python."""
    if isinstance(value, list):
        return f"[{','.join(map(_shape, value))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = (f"{name}={_shape(field)}" for name, field in ast.iter_fields(value) if field is not None and field != [])
    return f"{type(value).__name__}({','.join(fields)})"


def _hashed(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:LENGTH]

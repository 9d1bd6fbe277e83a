"""Modules do not import each other in circles; imports for type checkers count. One of the purgatory is allowed."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "broker_sim": ROOT / "broker_sim",
    "broker_sim_purgatory": ROOT / "purgatory" / "broker_sim_purgatory",
    "broker_sim_integration": ROOT / "integration" / "broker_sim_integration",
}
OF_THE_PURGATORY = {
    # An entry of a timer's list names the task it belongs to, the task its entry, and an operation is a task.
    *("broker_sim_purgatory._timer_task_entry", "broker_sim_purgatory.timer_task"),
    "broker_sim_purgatory.delayed_operation",
}


def modules(package):
    """Return the paths of a package's modules, by their names."""
    found = {}
    for path in PACKAGES[package].rglob("*.py"):
        *parents, name = path.relative_to(PACKAGES[package].parent).with_suffix("").parts
        found[".".join(parents if name == "__init__" else (*parents, name))] = path
    return found


def imports(paths):
    """Return the modules that each module imports, anywhere in it."""
    graph = {name: set() for name in paths}
    for name, path in paths.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & paths.keys()
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    graph[name] |= {module if module in paths else node.module} & paths.keys()
        graph[name].discard(name)
    return graph


def circles(graph):
    """Return the modules that reach each other, one set for each circle; takes away what ends or begins a chain."""
    graph = {name: set(imported) for name, imported in graph.items()}
    found = []
    while True:
        imported = set().union(*graph.values())
        chain = {name for name in graph if not graph[name] or name not in imported}
        if not chain:
            break
        graph = {name: graph[name] - chain for name in graph.keys() - chain}
    while graph:
        start = min(graph)
        back = {name: {other for other in graph if name in graph[other]} for name in graph}
        circle = reached_from(start, graph) & reached_from(start, back)
        if len(circle) > 1:
            found.append(circle)
        graph = {name: graph[name] - circle for name in graph.keys() - circle}
    return found


def reached_from(start, graph):
    """Return the start and all that is reached from it."""
    reached, ahead = {start}, [start]
    while ahead:
        new = graph[ahead.pop()] - reached
        reached |= new
        ahead += new
    return reached


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"e"}, "e": {"d", "f"}, "f": set()}
    assert circles(graph) == [{"b", "c"}, {"d", "e"}]


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_do_not_import_each_other_in_circles(package):
    found = [circle for circle in circles(imports(modules(package))) if circle != OF_THE_PURGATORY]
    assert found == []

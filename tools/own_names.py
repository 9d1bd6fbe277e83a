"""Gives the packages that a wheel ships names of their own.

`purgatory` is another project on PyPI, and a folder `integration` is what many users have for tests of
their own, so a wheel ships both under names that begin with the project's; docs/decisions.md says why.
Only what refers to a module is changed, at the place that the syntax tree gives: imports, and
in strings the dotted names of modules that exist, as in `python -m integration.reference`.
"""

from __future__ import annotations

import ast
import re
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

OWN_NAMES: Final[Mapping[str, str]] = {"integration": "broker_sim_integration", "purgatory": "broker_sim_purgatory"}
SOURCES: Final = (".py", ".pyi")
NOT_SHIPPED: Final = shutil.ignore_patterns(
    *("__pycache__", "*.py[co]", "*.so", "*.pyd"),
    *("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE"),
)
_FROM: Final = re.compile(rb"from[ \t]*")
_DOTTED: Final = re.compile(rf"(?<![\w./-])(?:{'|'.join(OWN_NAMES)})(?:\.\w+)+")


class RenameError(Exception):
    """A source refers to a module in a way that cannot be renamed; the text says where and why."""


class _Edit(NamedTuple):
    """Replaces bytes of a line; lines count from 1, columns are those of its UTF-8."""

    line: int
    column: int
    old: str
    new: str


def copy_packages(packages: Iterable[str], root: Path, target: Path, *, names: Mapping[str, str]) -> None:
    """Copy the packages from `root` to `target`, those in `names` under the names given there."""
    packages = tuple(packages)
    for package in packages:
        shutil.copytree(root / package, target / names.get(package, package), ignore=NOT_SHIPPED)
    if not names:
        return
    modules = {module for package in packages for module in _modules(root, package)}
    for path in sorted(target.rglob("*")):
        if path.suffix in SOURCES:
            try:
                renamed = rename(path.read_text(encoding="utf-8"), modules)
            except RenameError as error:
                raise RenameError(f"{path.relative_to(target)}:{error}") from error
            path.write_text(renamed, encoding="utf-8")


def own_name(dotted: str, names: Mapping[str, str] = OWN_NAMES) -> str:
    """Return a module's name, or an entry point's, as it is in a wheel."""
    package, dot, rest = dotted.partition(".")
    return f"{names.get(package, package)}{dot}{rest}"


def rename(source: str, modules: AbstractSet[str]) -> str:
    """Return the source with the names of a wheel; `modules` are the dotted names that exist."""
    if not any(name in source for name in OWN_NAMES):
        return source
    lines = source.encode().splitlines(keepends=True)
    for edit in sorted(_edits(ast.parse(source), lines, modules), reverse=True):
        line, old = lines[edit.line - 1], edit.old.encode()
        if not line.startswith(old, edit.column):
            raise RenameError(f"{edit.line}: {edit.old} does not stand in column {edit.column}")
        end = edit.column + len(old)
        lines[edit.line - 1] = line[: edit.column] + edit.new.encode() + line[end:]
    renamed = b"".join(lines)
    for left in _edits(ast.parse(renamed), renamed.splitlines(keepends=True), modules):
        raise RenameError(f"{left.line}: {left.old} cannot be renamed")
    return renamed.decode()


def _modules(root: Path, package: str) -> Iterator[str]:
    for path in (root / package).rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _edits(tree: ast.AST, lines: list[bytes], modules: AbstractSet[str]) -> Iterator[_Edit]:
    in_f_strings: set[ast.expr] = set()
    for node in ast.walk(tree):  # a node comes before those that it contains
        if isinstance(node, ast.Import):
            yield from _edits_of_import(node)
        elif isinstance(node, ast.ImportFrom):
            yield from _edits_of_import_from(node, lines)
        elif isinstance(node, ast.JoinedStr):
            in_f_strings.update(node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in in_f_strings:
                yield from _edits_of_string(node, lines, modules)
            elif any(_is_module(found, modules) for found in _DOTTED.findall(node.value)):
                raise RenameError(f"{node.lineno}: write module names of f-strings as __package__")


def _edits_of_import(node: ast.Import) -> Iterator[_Edit]:
    for alias in node.names:
        if alias.name.partition(".")[0] not in OWN_NAMES:
            continue
        new = own_name(alias.name)
        if alias.asname is None:
            if "." in alias.name:
                raise RenameError(f"{alias.lineno}: import {alias.name} needs a name: as ...")
            new = f"{new} as {alias.name}"
        yield _Edit(alias.lineno, alias.col_offset, alias.name, new)


def _edits_of_import_from(node: ast.ImportFrom, lines: list[bytes]) -> Iterator[_Edit]:
    module = node.module or ""
    if node.level or module.partition(".")[0] not in OWN_NAMES:
        return
    start = _FROM.match(lines[node.lineno - 1], node.col_offset)
    assert start is not None
    yield _Edit(node.lineno, start.end(), module, own_name(module))


def _edits_of_string(node: ast.Constant, lines: list[bytes], modules: AbstractSet[str]) -> Iterator[_Edit]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    for number in range(node.lineno, node.end_lineno + 1):
        start = node.col_offset if number == node.lineno else 0
        end = node.end_col_offset if number == node.end_lineno else None
        text = lines[number - 1][start:end].decode()
        for found in _DOTTED.finditer(text):
            if _is_module(found[0], modules):
                column = start + len(text[: found.start()].encode())
                yield _Edit(number, column, found[0], own_name(found[0]))


def _is_module(dotted: str, modules: AbstractSet[str]) -> bool:
    """Tell whether that is a module of a package, or a name in one."""
    package, first, *_ = dotted.split(".")
    return f"{package}.{first}" in modules

"""The process of a fork server: it imports what a script imports, and runs the script in each copy.

Run by its path, so it imports the standard library only.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path
from types import ModuleType


def serve_forks() -> bool:
    """Wait to be copied. Return True in each copy, with its environment; False if this process cannot be copied."""
    gc.collect()
    gc.freeze()  # so that collections in a copy do not touch, and so duplicate, what all share
    ctypes.pythonapi.PyOS_BeforeFork()
    environment: int = ctypes.PyDLL(None).virtual_time_serve_forks()
    if environment < 0:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        return False
    ctypes.pythonapi.PyOS_AfterFork_Child()
    with open(environment, "rb") as file:
        variables = json.load(file)
    os.environ.clear()
    os.environ.update(variables)
    return True


def installed_imports(script: Path) -> list[str]:
    """Return the names of the installed modules that a script, or its own modules beside it, import at top level."""
    names: dict[str, None] = {}
    files, seen = [script], set()
    while files:
        file = files.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        for statement in ast.parse(file.read_bytes()).body:
            if isinstance(statement, ast.Import):
                wanted = [(script.parent, alias.name) for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                folder = file.parents[statement.level - 1] if statement.level else script.parent
                wanted = [(folder, statement.module or alias.name) for alias in statement.names]
            else:
                continue
            for folder, name in wanted:
                path = folder.joinpath(*name.split("."))
                top = folder / name.partition(".")[0]
                if top.is_dir() or top.with_suffix(".py").is_file():
                    files += [path.with_suffix(".py"), path / "__init__.py"]
                elif _is_installed(name):
                    names[name] = None
    return list(names)


def _is_installed(name: str) -> bool:
    spec = importlib.util.find_spec(name.partition(".")[0])
    folders = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))
    return spec is not None and (spec.origin in {"built-in", "frozen"} or (spec.origin or "").startswith(folders))


def main(script: str) -> None:
    """Import what the script imports from installed packages, wait to be copied, and run it in the copy."""
    path = Path(script).resolve()
    sys.argv = sys.argv[1:]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(path.parent)
    for name in installed_imports(path):
        with suppress(Exception):  # the script will tell
            importlib.import_module(name)
    if not serve_forks():
        sys.exit("this process cannot be copied")
    file = os.path.abspath(script)  # noqa: PTH100 - links are kept
    module = sys.modules["__main__"] = ModuleType("__main__")
    vars(module).update(__file__=file, __builtins__=builtins)
    try:
        code = compile(path.read_bytes(), file, "exec", dont_inherit=True)
        exec(code, vars(module))  # noqa: S102 - it is the user's script
    except Exception as error:  # noqa: BLE001 - as Python ends
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1])

"""What the build hooks of both distributions share: a wheel is filled from a copy of the sources.

The copy has the names of a wheel (tools/own_names.py), in modules and in entry points.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.own_names import OWN_NAMES, copy_packages, own_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def is_asked_for(switch: str) -> bool:
    """Return whether an environment variable is set to 1."""
    return os.environ.get(switch) == "1"


def names_of_wheel() -> Mapping[str, str]:
    """Return the packages that have another name in the wheel; BROKER_SIM_SOURCE_NAMES=1: none."""
    return {} if is_asked_for("BROKER_SIM_SOURCE_NAMES") else OWN_NAMES


def copy_sources(hook: object, packages: Iterable[str], repository: Path) -> Path:
    """Copy packages of the repository with the wheel's names; the copy lives as long as the hook."""
    tree = Path(tempfile.mkdtemp())
    weakref.finalize(hook, shutil.rmtree, tree, ignore_errors=True)
    copy_packages(packages, repository, tree, names=names_of_wheel())
    return tree


def ship(tree: Path, build_data: dict[str, Any], core: Any) -> None:
    """Put the copy into the wheel, and the wheel's names into the entry points of its metadata."""
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        build_data["force_include"][str(path)] = str(path.relative_to(tree))
    names = names_of_wheel()
    for entries in (core.scripts, *core.entry_points.values()):
        entries.update({name: own_name(target, names) for name, target in entries.items()})

"""Build hook of the distribution broker-sim-compare: fills its wheel from this folder.

The wheel ships the package as `broker_sim_integration` (tools/own_names.py). An editable install uses
the folder as it is. BROKER_SIM_SOURCE_NAMES=1 keeps the name `integration` in a wheel.

It works in the repository, where `tools` and `docs` are beside this folder, and in a source
distribution, which has this folder, `tools` and `docs` in it.
"""

from __future__ import annotations

import gzip
import shutil
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The builder loads this file alone, and finds `tools` in the repository or in the source distribution.
sys.path.insert(0, str(next(path for path in Path(__file__).parents if (path / "tools").is_dir())))
from tools.wheel_sources import copy_sources, names_of_wheel, ship

PACKAGE = "integration"
REPOSITORY = Path(sys.path[0])
DOCUMENTS = {"docs/differences.md": "comparison/differences.md"}
"""What the wheel ships beside its modules: path in the repository, path in the package."""
GZIPPED = ("reference/recorded/observations.jsonl",)
"""What the wheel ships gzipped, because it is large where it is installed; its readers take both."""


def gzip_in_place(path: Path) -> None:
    """Put a gzipped file in the place of a file; the same bytes each time."""
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Fills the wheel from a copy of the sources, with their names in it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Prepare what the wheel ships; hatchling's `version` is "standard" or "editable"."""
        if version == "editable":
            return
        tree = copy_sources(self, [PACKAGE], REPOSITORY)
        package = tree / names_of_wheel().get(PACKAGE, PACKAGE)
        for source, target in DOCUMENTS.items():
            shutil.copy(REPOSITORY / source, package / target)
        for path in GZIPPED:
            gzip_in_place(package / path)
        ship(tree, build_data, self.metadata.core)

"""Part of the pytest plugin: how to repeat a failed test in virtual time."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

from broker_sim.runtime.virtual.stdlib import pinned_hash_seed

if TYPE_CHECKING:
    import pytest

MARKER: Final = "virtual_time"
SEEDED: Final = "seeded"


def how_to_repeat(item: pytest.Item, seed: int, passed: int, plugin: str) -> str:
    """Return the command that runs the test alone with this seed, and whether it must fail again."""
    config = item.config
    hash_seed = pinned_hash_seed()
    load = f"-p {plugin} " if plugin in config.getoption("plugins") else ""
    # A node id begins at the root directory; the command is typed where this one was.
    file = os.path.relpath(item.path, config.invocation_params.dir)
    node_id = shlex.quote(f"{file}::{item.nodeid.partition('::')[2]}")
    lines = [
        f"seed {seed} failed, {passed} before it passed; repeat it alone:",
        f"  PYTHONHASHSEED={hash_seed or 0} pytest {load}{node_id} --virtual-seed={seed}",
    ]
    marker = item.get_closest_marker(MARKER)
    if marker is not None and marker.kwargs.get("order") == SEEDED and not config.getoption("virtual_shrink"):
        lines.append("--virtual-shrink finds the deviations from first in, first out that it needs")
    if hash_seed is None:
        lines.append(
            "PYTHONHASHSEED was not set in this run. If the program iterates sets of strings, the\n"
            "command may take another course; set it for all tests to make every failure repeat."
        )
    return "\n".join(lines)

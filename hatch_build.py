"""Build hook: gives the wheel's packages names of their own, and compiles the hot modules with mypyc.

A wheel ships `broker_sim`, and `purgatory` as `broker_sim_purgatory` (tools/own_names.py). An editable
install uses the folders of the repository as they are. `integration` is a distribution of its own.

A build is pure Python. The environment variable BROKER_SIM_COMPILE=1 asks for a native one, with the
same behaviour, and then a build that cannot be native fails. One line of the build's output tells which
it is (pip shows it with -v), `broker_sim.compiled` tells it at run time.

BROKER_SIM_OPT_LEVEL=0 (default 3) makes a native build quicker, and what it builds slower.

BROKER_SIM_SOURCE_NAMES=1 keeps the names of the repository in a wheel: its tests import them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))  # the builder loads this file alone
from tools.own_names import own_name
from tools.wheel_sources import copy_sources, is_asked_for, names_of_wheel, ship

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES = ("broker_sim", "purgatory")
# What runs for every request that a broker serves and for every fetch of a follower. Modules that
# call each other are compiled together: only among them is a call native.
MODULES = (
    "broker_sim.broker.broker",
    "broker_sim.broker.dispatch",
    "broker_sim.broker.leader_link",
    "broker_sim.broker.replica_server",
    "broker_sim.fetch_session.cache",
    "broker_sim.fetch_session.cached_partition",
    "broker_sim.fetch_session.manager",
    "broker_sim.fetch_session.session",
    "broker_sim.handlers.context",
    "broker_sim.handlers.data.fetch",
    "broker_sim.handlers.data.fetch_response",
    "broker_sim.handlers.data.produce",
    "broker_sim.handlers.data.wanted_partitions",
    "broker_sim.handlers.share.acknowledgements",
    "broker_sim.handlers.share.share_acknowledge",
    "broker_sim.handlers.share.share_fetch",
    "broker_sim.handlers.share.share_fetch_response",
    "broker_sim.log.append_info",
    "broker_sim.log.leader_epoch_cache",
    "broker_sim.log.local_log",
    "broker_sim.log.log_offsets",
    "broker_sim.log.memory",
    "broker_sim.log.partition_log",
    "broker_sim.log.producer_checks",
    "broker_sim.log.producer_state_entry",
    "broker_sim.log.producer_state_manager",
    "broker_sim.log.segment",
    "broker_sim.log.validator",
    "broker_sim.log.verification_state",
    "broker_sim.metadata.cache",
    "broker_sim.network.client_link",
    "broker_sim.network.connection",
    "broker_sim.network.framing",
    "broker_sim.protocol.codec",
    "broker_sim.protocol.headers",
    "broker_sim.protocol.record_batch",
    "broker_sim.replica.delayed_acks",
    "broker_sim.replica.delayed_delete_records",
    "broker_sim.replica.delayed_elect_leader",
    "broker_sim.replica.delayed_fetch",
    "broker_sim.replica.delayed_produce",
    "broker_sim.replica.fetch_params",
    "broker_sim.replica.fetcher",
    "broker_sim.replica.follower_session",
    "broker_sim.replica.isr_state",
    "broker_sim.replica.leader_replicas",
    "broker_sim.replica.partition",
    "broker_sim.replica.purgatories",
    "broker_sim.replica.replica",
    "broker_sim.replica.replica_manager",
    "broker_sim.replica.replica_quota",
    "broker_sim.replica.replica_selector",
    "broker_sim.replica.truncation",
    "broker_sim.runtime.action_queue",
    "broker_sim.runtime.delayed_request",
    "broker_sim.runtime.links",
    "broker_sim.runtime.process",
    "broker_sim.share.coordinator.state_batches",
    "broker_sim.share.partition.acknowledgement",
    "broker_sim.share.partition.acquisition",
    "broker_sim.share.partition.acquisition_lock",
    "broker_sim.share.partition.delayed_share_fetch",
    "broker_sim.share.partition.fetched_records",
    "broker_sim.share.partition.in_flight_batch",
    "broker_sim.share.partition.in_flight_map",
    "broker_sim.share.partition.in_flight_records",
    "broker_sim.share.partition.in_flight_state",
    "broker_sim.share.partition.lock_timeout",
    "broker_sim.share.partition.log_reader",
    "broker_sim.share.partition.share_fetch",
    "broker_sim.share.partition.share_partition",
    "broker_sim.share.partition.share_partition_manager",
    "broker_sim.share.partition.state_update",
    "broker_sim.share.session.cache",
    "broker_sim.share.session.context",
    "broker_sim.share.session.session",
    "broker_sim.trace.lines",
    "broker_sim.trace.tracer",
    "broker_sim_purgatory._delay_queue",
    "broker_sim_purgatory._operation_journal",
    "broker_sim_purgatory._rate_window",
    "broker_sim_purgatory._timer_task_entry",
    "broker_sim_purgatory._timer_task_list",
    "broker_sim_purgatory._timing_wheel",
    "broker_sim_purgatory._watchers",
    "broker_sim_purgatory.clock",
    "broker_sim_purgatory.delayed_operation",
    "broker_sim_purgatory.delayed_operation_purgatory",
    "broker_sim_purgatory.key_set",
    "broker_sim_purgatory.loop_timer",
    "broker_sim_purgatory.pending_operation",
    "broker_sim_purgatory.system_timer",
    "broker_sim_purgatory.timer_task",
)
REQUIREMENTS = ["mypy>=1.11", "setuptools>=77"]
TIMEOUT_S = 1_800


class NoNativeBuildError(Exception):
    """The modules cannot be compiled here; the text says why."""


def wants_native() -> bool:
    """Return whether the build should be native."""
    return is_asked_for("BROKER_SIM_COMPILE")


def find_compiler() -> str | None:
    """Return the C compiler that this Python was made with, None if it or Python.h is missing."""
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(compiler) if header.exists() else None


def compile_modules(tree: Path, names: Mapping[str, str]) -> None:
    """Compile the hot modules of the packages in `tree`, beside their sources."""
    if find_compiler() is None:
        raise NoNativeBuildError("no C compiler, or no Python.h")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NoNativeBuildError("mypyc's code needs the global interpreter lock")
    modules = [own_name(module, names) for module in MODULES]
    try:
        done = subprocess.run(  # noqa: S603 - this very file
            [sys.executable, __file__, str(tree), *modules],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise NoNativeBuildError(f"the compiler took more than {TIMEOUT_S} s") from expired
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise NoNativeBuildError(lines[-1])
    libraries = sum(1 for _ in tree.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))
    if libraries <= len(MODULES):  # one for each, and what they share
        raise NoNativeBuildError(f"{libraries} libraries came of {len(MODULES)} modules")


def _compile_in_this_process(tree: Path, modules: list[str]) -> None:
    """Compile a copy, because mypyc writes C files and caches beside the sources."""
    from mypyc.build import mypycify  # noqa: PLC0415 - there only where REQUIREMENTS are
    from setuptools import setup  # noqa: PLC0415 - as above

    packages = [path.name for path in tree.iterdir()]
    opt_level = os.environ.get("BROKER_SIM_OPT_LEVEL", "3")
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(tree, directory, dirs_exist_ok=True)
        os.chdir(directory)
        paths = [f"{module.replace('.', '/')}.py" for module in modules]
        # The packages that broker_sim depends on are not installed here; their types are not needed.
        options = ["--ignore-missing-imports"]
        setup(
            name="broker-sim",
            packages=packages,
            ext_modules=mypycify([*options, *paths], opt_level=opt_level),
            script_args=["--quiet", "build_ext", "--build-lib", str(tree)],
        )


if __name__ == "__main__":
    _compile_in_this_process(Path(sys.argv[1]), sys.argv[2:])
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
        """Fills the wheel from a copy of the sources, with their names and libraries in it."""

        def dependencies(self) -> list[str]:
            """Return what has to be installed for the build."""
            return REQUIREMENTS if wants_native() else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Prepare what the wheel ships; hatchling's `version` is "standard" or "editable"."""
            if version == "editable":
                if wants_native():
                    raise NoNativeBuildError("an editable install is pure: unset BROKER_SIM_COMPILE")
                return
            tree = copy_sources(self, PACKAGES, Path(self.root))
            if wants_native():
                compile_modules(tree, names_of_wheel())
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
            ship(tree, build_data, self.metadata.core)
            what = f"{len(MODULES)} modules compiled by mypyc" if wants_native() else "pure Python"
            self.app.display_info(f"broker-sim: {what}")

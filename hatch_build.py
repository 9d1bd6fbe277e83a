"""Build hook: compiles the hot modules with mypyc, from the same readable source.

A wheel is native where a C compiler is there, else pure, with the same behaviour. An editable
install is pure. The environment variable BROKER_SIM_COMPILE asks for one of them: 0 for pure, 1 for
native, and then a build that cannot be native fails. One line of the build's output tells which
it is (pip shows it with -v), `purgatory.compiled` and `broker_sim.compiled` tell it at run time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

PACKAGES = ("broker_sim", "purgatory")
# What runs for every request that a broker serves and for every fetch of a follower. Modules that
# call each other are compiled together: only among them is a call native.
MODULES = (
    "broker_sim.broker.broker",
    "broker_sim.broker.dispatch",
    "broker_sim.broker.leader_link",
    "broker_sim.broker.replica_server",
    "broker_sim.handlers.context",
    "broker_sim.handlers.data.fetch",
    "broker_sim.handlers.data.produce",
    "broker_sim.log.append_info",
    "broker_sim.log.leader_epoch_cache",
    "broker_sim.log.local_log",
    "broker_sim.log.partition_log",
    "broker_sim.log.producer_state_entry",
    "broker_sim.log.producer_state_manager",
    "broker_sim.log.segment",
    "broker_sim.log.validator",
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
    "broker_sim.replica.isr_state",
    "broker_sim.replica.leader_replicas",
    "broker_sim.replica.partition",
    "broker_sim.replica.purgatories",
    "broker_sim.replica.replica",
    "broker_sim.replica.replica_manager",
    "broker_sim.runtime.action_queue",
    "broker_sim.runtime.delayed_request",
    "broker_sim.runtime.links",
    "broker_sim.runtime.process",
    "broker_sim.trace.lines",
    "broker_sim.trace.tracer",
    "purgatory._delay_queue",
    "purgatory._operation_journal",
    "purgatory._rate_window",
    "purgatory._timer_task_entry",
    "purgatory._timer_task_list",
    "purgatory._timing_wheel",
    "purgatory._watchers",
    "purgatory.clock",
    "purgatory.delayed_operation",
    "purgatory.delayed_operation_purgatory",
    "purgatory.loop_timer",
    "purgatory.pending_operation",
    "purgatory.system_timer",
    "purgatory.timer_task",
)
REQUIREMENTS = ["mypy>=1.11", "setuptools>=77"]
TIMEOUT_S = 600
SWITCH = "BROKER_SIM_COMPILE"


class NoNativeBuildError(Exception):
    """The modules cannot be compiled here; the text says why."""


def wants_native(version: str) -> bool:
    """Return whether a build (hatchling's "standard" or "editable") should be native."""
    asked = os.environ.get(SWITCH, "")
    return asked == "1" if asked or version == "editable" else find_compiler() is not None


def find_compiler() -> str | None:
    """Return the C compiler that this Python was made with, None if it or Python.h is missing."""
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return shutil.which(compiler) if header.exists() else None


def compile_modules(root: Path, target: Path) -> list[Path]:
    """Compile the modules of the packages in `root`; return the libraries, relative to `target`."""
    if find_compiler() is None:
        raise NoNativeBuildError("no C compiler, or no Python.h")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NoNativeBuildError("mypyc's code needs the global interpreter lock")
    done = subprocess.run(  # noqa: S603 - this very file
        [sys.executable, __file__, str(root), str(target)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise NoNativeBuildError(lines[-1])
    libraries = [path.relative_to(target) for path in target.rglob(f"*{_library_suffix()}")]
    if len(libraries) <= len(MODULES):  # one for each, and what they share
        raise NoNativeBuildError(f"{len(libraries)} libraries came of {len(MODULES)} modules")
    return sorted(libraries)


def _library_suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def _compile_in_this_process(root: Path, target: Path) -> None:
    """Compile in a copy, because mypyc writes C files and caches beside the sources."""
    from mypyc.build import mypycify  # noqa: PLC0415 - there only where REQUIREMENTS are
    from setuptools import setup  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory() as directory:
        for package in PACKAGES:
            shutil.copytree(root / package, Path(directory, package))
        os.chdir(directory)
        paths = [f"{module.replace('.', '/')}.py" for module in MODULES]
        # The packages that broker_sim depends on are not installed here; their types are not needed.
        options = ["--ignore-missing-imports"]
        setup(
            name="broker-sim",
            packages=list(PACKAGES),
            ext_modules=mypycify([*options, *paths], opt_level="3"),
            script_args=["--quiet", "build_ext", "--build-lib", str(target)],
        )


if __name__ == "__main__":
    _compile_in_this_process(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class NativeModulesHook(BuildHookInterface):  # type: ignore[type-arg]
        """Puts the compiled modules into the wheel, beside their sources."""

        def dependencies(self) -> list[str]:
            """Return what has to be installed for the build, which may still be pure."""
            return REQUIREMENTS if wants_native("standard") else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, if that is wanted and possible."""
            if not wants_native(version):
                self._tell("pure Python")
                return
            root = Path(self.root)
            target = Path(tempfile.mkdtemp())
            self._target = target
            try:
                libraries = compile_modules(root, target)
            except NoNativeBuildError as error:
                if os.environ.get(SWITCH) == "1":
                    raise
                self._tell(f"pure Python ({error})")
                return
            for library in libraries:
                if version == "editable":
                    shutil.copy2(target / library, root / library)
                else:
                    build_data["force_include"][str(target / library)] = str(library)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            self._tell(f"{len(MODULES)} modules compiled by mypyc")

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove what was compiled, now that it is in the wheel."""
            del version, build_data, artifact_path
            if (target := getattr(self, "_target", None)) is not None:
                shutil.rmtree(target)

        def _tell(self, what: str) -> None:
            self.app.display_info(f"broker-sim: {what}")

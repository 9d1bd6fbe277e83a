"""Build hooks of broker-sim: native modules, and what the metadata say of the repository.

With BROKER_SIM_COMPILE=1 a wheel has the purgatory's hot modules as mypyc compiles them. Without that variable a wheel
is pure Python: the files of the repository as they stand. The native modules lie beside their sources and behave the
same; `broker_sim.purgatory.compiled` tells whether they are there. A native build needs a C compiler and Python's
headers, and fails without them. It has the library of programs in virtual time too, where there is glibc; without it
that library is compiled at its first use.

`python hatch_build.py DIRECTORY` copies the package into a directory and compiles it there, for `make compiled`.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "purgatory" / "broker_sim_purgatory"
PROGRAMS = Path(__file__).parent / "broker_sim" / "runtime" / "virtual" / "programs"
# Modules that call each other are compiled together: only among them is a call native.
MODULES = (
    "_delay_queue",
    "_operation_journal",
    "_rate_window",
    "_timer_task_entry",
    "_timer_task_list",
    "_timing_wheel",
    "_watchers",
    "clock",
    "delayed_operation",
    "delayed_operation_purgatory",
    "key_set",
    "loop_timer",
    "pending_operation",
    "system_timer",
    "timer_task",
)


def compile_copy(directory: Path) -> None:
    """Copy the package into `directory` and compile it there: mypyc writes beside the sources."""
    from mypyc.build import mypycify  # noqa: PLC0415 - not installed where a pure wheel is built
    from setuptools import setup  # noqa: PLC0415 - as above

    shutil.copytree(SOURCE, directory / SOURCE.name, ignore=shutil.ignore_patterns("__pycache__"))
    os.chdir(directory)
    libraries = mypycify([f"{SOURCE.name}/{module}.py" for module in MODULES])
    setup(name=SOURCE.name, packages=[SOURCE.name], ext_modules=libraries, script_args=["-q", "build_ext", "--inplace"])


if __name__ == "__main__":
    compile_copy(Path(sys.argv[1]))
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class RepositoryLinks(MetadataHookInterface):
        """Makes the project's links of the repository's address, so that README's hold on a package index too."""

        def update(self, metadata: dict[str, Any]) -> None:
            """Add `readme` and `urls`; without an address README's links stay relative and there are no others."""
            repository = self.config["repository"]
            readme = (Path(self.root) / "README.md").read_text("utf-8")
            if repository:
                readme = re.sub(r"\]\((?![a-z]+:|#)", f"]({repository}/blob/main/", readme)
                readme = re.sub(rf"(!\[[^\]]*\]\({re.escape(repository)})/blob/", r"\1/raw/", readme)
            pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
            links = {title: f"{repository}/blob/main/{page}" for title, page in pages.items()}
            metadata["urls"] = {"Source": repository, **links} if repository else {}
            metadata["readme"] = {"content-type": "text/markdown", "text": readme}

    class NativePurgatory(BuildHookInterface):  # type: ignore[type-arg]
        """Adds the native modules to the wheel."""

        is_native = os.environ.get("BROKER_SIM_COMPILE") == "1"

        def dependencies(self) -> list[str]:
            """Return what has to be installed for the build."""
            return ["mypy>=1.11", "setuptools>=77"] if self.is_native else []

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile the modules of a wheel; hatchling's `version` is "standard" or "editable"."""
            if not self.is_native or version == "editable":
                return
            self._copy = tempfile.TemporaryDirectory()
            directory = Path(self._copy.name)
            subprocess.run([sys.executable, __file__, str(directory)], check=True)  # noqa: S603 - this very file
            suffix = sysconfig.get_config_var("EXT_SUFFIX")
            for library in (*directory.glob(f"*{suffix}"), *directory.glob(f"{SOURCE.name}/*{suffix}")):
                build_data["force_include"][str(library)] = str(library.relative_to(directory))
            # Without it, as on musl, the wheel cannot run programs in virtual time, and says so.
            library = directory / "virtual_time.so"
            subprocess.run([sys.executable, str(PROGRAMS / "compiling.py"), str(library)], check=False)  # noqa: S603
            if library.exists():
                inside = PROGRAMS.relative_to(Path(__file__).parent) / "library" / library.name
                build_data["force_include"][str(library)] = str(inside)
            build_data.update(pure_python=False, infer_tag=True)

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove the copy: the wheel is written."""
            del version, build_data, artifact_path
            if self.is_native:
                self._copy.cleanup()

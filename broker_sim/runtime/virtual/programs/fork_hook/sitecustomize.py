"""Runs at the start of Python in the process of a fork server: imports packages, and waits to be copied.

The simulator puts this folder in front of PYTHONPATH. Python then runs the script in each copy, as it always does.
"""

import gc
import os
import sys

START = 899
"""Descriptor of a copy's file with its working directory and its environment, separated by 0 bytes."""


def serve_forks() -> None:
    """Wait to be copied; return in each copy, with its environment. Raises OSError if this process cannot be copied."""
    gc.collect()
    gc.freeze()  # so that collections in a copy do not touch, and so duplicate, what all share
    os.environ["VT_SERVES"] = "1"
    os.fork()
    with os.fdopen(START, "rb") as file:
        folder, *variables = file.read().split(b"\0")
    os.environb.clear()
    for variable in variables:
        name, _, os.environb[name] = variable.partition(b"=")
    os.chdir(folder)


def import_installed(names: list[str]) -> None:
    """Import modules in turn, up to the first that is missing, fails, or belongs to the application."""
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib is not imported at the start of Python
    for name in names:
        specs = (finder.find_spec(name.partition(".")[0], None) for finder in sys.meta_path)
        origin = next((spec.origin or "" for spec in specs if spec is not None), "")
        is_installed = origin in {"built-in", "frozen"} or origin.startswith(library) or "-packages/" in origin
        try:
            if not is_installed:
                return
            __import__(name)
        except Exception:  # noqa: BLE001 - the script raises it again
            return


def _as_fork_server() -> None:
    names = os.environ.pop("VT_IMPORTS").split(",")
    sys.path.remove(os.path.dirname(__file__))  # noqa: PTH120 - as above
    _, _, os.environ["PYTHONPATH"] = os.environ["PYTHONPATH"].partition(os.pathsep)
    this = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")  # the user's
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this
    import_installed(names)
    serve_forks()


if __name__ == "sitecustomize":
    try:
        _as_fork_server()
    except BaseException:  # noqa: BLE001 - the script must not run in this process
        os._exit(1)

"""Which code is the program's own, and where it is: for chance, and for reports."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_SITES = {"site-packages", "dist-packages"}
_OWN = Path(__file__).parents[2]


@cache
def is_of_a_library(file: str) -> bool:
    """Whether a file belongs to Python or to something that is installed, or is none."""
    path = Path(file)
    return path.is_relative_to(_STANDARD_LIBRARY) or not _SITES.isdisjoint(path.parts)


@cache
def is_ours(file: str) -> bool:
    """Whether a file belongs to this package, or is none."""
    return file.startswith("<") or Path(file).is_relative_to(_OWN)


def place_of_the_program(frame: FrameType | None = None) -> str:
    """Return the innermost line of the program that is being run, or of a library without one.

    Of this thread, unless the frame of another one is given.
    """
    frame = frame or sys._getframe(1)
    library: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_ours(file):
            if not is_of_a_library(file):
                return _text(frame)
            library = library or frame
        elif library is not None:
            break  # the loop, below which is whoever runs it
        frame = frame.f_back
    return "?" if library is None else _text(library)


def _text(frame: FrameType) -> str:
    code = frame.f_code
    return f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'

"""Tells whether a frame that handles an exception has caught it, or only closes what it leaves."""

from __future__ import annotations

import ast
import linecache
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def is_caught(frame: FrameType) -> bool:
    """Whether the frame is in an `except` clause that does not end with a `raise`.

    It is not in a `finally` and at the end of a `with`, from where the exception goes on.
    """
    return any(frame.f_lineno in lines for lines in _clauses(frame.f_code.co_filename))


@cache
def _clauses(filename: str) -> list[range]:
    """Return the lines of each such clause of a file, none if its source is not known."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return []
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise)
    ]

"""Stands in for pytest in the tab: an application only marks its tests, and the search reads the marks."""

from contextlib import contextmanager
from typing import NamedTuple


class Mark(NamedTuple):
    """A mark as pytest keeps it in a function's `pytestmark`."""

    name: str
    args: tuple
    kwargs: dict


class _Marks:
    def __getattr__(self, name):
        def mark(*args, **kwargs):
            def put(function):
                function.pytestmark = [*getattr(function, "pytestmark", ()), Mark(name, args, kwargs)]
                return function

            if len(args) == 1 and callable(args[0]) and not kwargs:  # without brackets
                (function,), args = args, ()
                return put(function)
            return put

        return mark


mark = _Marks()


def fail(reason=""):
    """Fail the test."""
    raise fail.Exception(reason)


class FailedError(Exception):
    """Raised by `fail`."""


fail.Exception = FailedError


@contextmanager
def raises(error):
    """Expect an error in the block."""
    try:
        yield
    except error:
        return
    fail(f"DID NOT RAISE {error!r}")

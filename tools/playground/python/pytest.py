"""Stands in for pytest in the tab: an application only marks its tests, and the search reads the marks."""

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

            return put

        return mark


mark = _Marks()

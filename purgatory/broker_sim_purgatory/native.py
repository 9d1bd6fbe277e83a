"""The decorator with which a class tells mypyc whether it may be subclassed; without mypyc it does nothing.

The hot modules are ordinary Python that mypyc can compile (see hatch_build.py). A native class can
only be subclassed from Python if it says so. It must not inherit from ABC: a weak reference to an
object of a subclass would crash the process. So abstract methods are abstract only to the type
checker, and raise NotImplementedError in both builds.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr  # noqa: PLC0414 - other modules import it from here
else:
    _ClassT = TypeVar("_ClassT", bound=type)

    def mypyc_attr(**_attributes: bool) -> Callable[[_ClassT], _ClassT]:
        """Return a decorator that leaves its class as it is."""
        return lambda cls: cls

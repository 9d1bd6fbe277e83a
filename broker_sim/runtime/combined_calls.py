"""One call for each of several keys, and all results together; mirrors `FutureUtils.combineFutures`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

K = TypeVar("K", bound="Hashable")
R = TypeVar("R")


def call_all(
    keys: Iterable[K], call: Callable[[K, Callable[[R], object]], object], on_all: Callable[[dict[K, R]], object]
) -> None:
    """Call `call(key, on_result)` for each distinct key, and `on_all(results)` after the last result.

    The results have the order of the keys, whichever comes first. Without keys `on_all` is called at once.
    """
    unique_keys = list(dict.fromkeys(keys))
    results: dict[K, R] = {}

    def take(key: K, result: R) -> None:
        results[key] = result
        if len(results) == len(unique_keys):
            on_all({unique_key: results[unique_key] for unique_key in unique_keys})

    if not unique_keys:
        on_all(results)
    for key in unique_keys:
        call(key, partial(take, key))

"""The difference between two pictures, in the form in which the page gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new and changed parts as `set`, and the names of the removed ones as `gone`."""
    return {
        "set": {name: part for name, part in after.items() if before.get(name) != part},
        "gone": [name for name in before if name not in after],
    }

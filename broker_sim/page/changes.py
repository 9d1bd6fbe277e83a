"""The difference between two pictures, as it travels to the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that are new or have changed as `set`, and the names of those that have gone as `gone`."""
    return {
        "set": {name: part for name, part in after.items() if before.get(name) != part},
        "gone": [name for name in before if name not in after],
    }

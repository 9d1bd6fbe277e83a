"""Who asks for something of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet


class GroupClient(NamedTuple):
    """The client of a request, as a description of its group shows it, and the API's version."""

    client_id: str
    client_host: str
    api_version: int
    hidden_topics: Callable[[Iterable[str]], AbstractSet[str]] = frozenset[str]().intersection
    """Returns those of the topics that the client may not describe."""

"""Who asks for something of a group."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GroupClient"]


class GroupClient(NamedTuple):
    """The client of a request, as a description of its group shows it, and the API's version."""

    client_id: str
    client_host: str
    api_version: int

"""Finds the quota that applies to a client; mirrors `DefaultQuotaCallback` of `ClientQuotaManager`.

The first of these that is set applies to a user and a client id:

    1  this user, this client id        5  default user, default client id
    2  this user, default client id     6  default user
    3  this user                        7  this client id
    4  default user, this client id     8  default client id

Clients under one quota share one rate: 3 and 6 measure all clients of a user together, 7 and 8 all users
of a client id, the others each pair of user and client id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.metadata.quota_entity import CLIENT_ID, USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.metadata.quota_entity import QuotaEntity

Tags = tuple[str, str]
"""User and client id of one measured rate; each is empty if the quota ignores it."""

_BY_CLIENT_ID, _BY_USER, _BY_BOTH = 1, 2, 4


class QuotaLimits:
    """The bounds of one kind of quota."""

    __slots__ = ("_bounds", "_kinds")

    def __init__(self, quotas: Iterable[tuple[QuotaEntity, float]]) -> None:
        self._bounds = dict(quotas)
        self._kinds = 0
        for entity in self._bounds:
            kinds = dict(entity)
            if USER not in kinds:
                self._kinds |= _BY_CLIENT_ID
            else:
                self._kinds |= _BY_BOTH if CLIENT_ID in kinds else _BY_USER

    def __bool__(self) -> bool:
        """Whether any bound is set."""
        return bool(self._kinds)

    def tags(self, user: str, client_id: str) -> Tags:
        """Return the tags of the client's rate."""
        if self._kinds in {0, _BY_CLIENT_ID}:
            return "", client_id
        if self._kinds == _BY_USER:
            return user, ""
        if self._kinds == _BY_BOTH:
            return user, client_id
        for entity in _in_order_of_precedence(user, client_id):
            if entity in self._bounds:
                kinds = dict(entity)
                return user, client_id if CLIENT_ID in kinds else ""
        return "", client_id

    def limit(self, tags: Tags) -> float | None:
        """Return the bound for these tags, None if unlimited."""
        user, client_id = tags
        entities: tuple[QuotaEntity, ...] = ()
        if user and client_id:
            both = _in_order_of_precedence(user, client_id)
            entities = tuple(entity for entity in both if len(entity) > 1)
        elif user:
            entities = (((USER, user),), ((USER, None),))
        elif client_id:
            entities = (((CLIENT_ID, client_id),), ((CLIENT_ID, None),))
        for entity in entities:
            bound = self._bounds.get(entity)
            if bound is not None:
                return bound
        return None


def _in_order_of_precedence(user: str, client_id: str) -> tuple[QuotaEntity, ...]:
    """Return the entities 1 to 6 of the list above."""
    this_client: Final = (CLIENT_ID, client_id)
    any_client: Final = (CLIENT_ID, None)
    return (
        (this_client, (USER, user)),
        (any_client, (USER, user)),
        ((USER, user),),
        (this_client, (USER, None)),
        (any_client, (USER, None)),
        ((USER, None),),
    )

"""The SCRAM credentials of users (KIP-554); mirrors `ScramControlManager`.

A client sends the password salted and hashed, with the salt and the iterations. The stored credential cannot be
used to log in (`broker_sim.metadata.scram`).

Deliberate difference: the credentials are in the image only. Error messages are like Kafka's, because
clients see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller.requests import Outcome, ScramDeletion, ScramResults, ScramUpsertion
from broker_sim.errors import ErrorCode
from broker_sim.metadata import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.metadata import MetadataDelta, ScramCredential

MAX_ITERATIONS: Final = 16_384

_TWICE: Final = Outcome(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_NOT_FOUND: Final = Outcome(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_NO_NAME: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_NO_MECHANISM: Final = Outcome(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NO_PASSWORD: Final = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)
"""Kafka's error for an empty password, after an exception of Java's HMAC, which accepts no empty key."""


def alter_scram_credentials(
    delta: MetadataDelta, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> ScramResults:
    """Delete and upsert credentials; an error of one user does not affect the others.

    The first error of a user counts. A user that occurs twice, with any mechanisms, is refused.
    """
    accepted: dict[str, ScramDeletion | ScramUpsertion] = {}
    refused: dict[str, Outcome] = {}
    alterations: tuple[ScramDeletion | ScramUpsertion, ...] = (*deletions, *upsertions)
    for alteration in alterations:
        user = alteration.user
        if user in refused:
            continue
        named_before = accepted.pop(user, None) is not None
        reason = _TWICE if named_before else _reason_against(alteration, delta.base.scram)
        if reason is None:
            accepted[user] = alteration
        else:
            refused[user] = reason
    deleted, upserted = [], []
    for user, change in accepted.items():
        credentials = dict(delta.scram.get(user, {}))
        if isinstance(change, ScramDeletion):
            del credentials[change.mechanism]
            deleted.append(user)
        elif change.salted_password:
            mechanism = SCRAM_MECHANISMS[change.mechanism]
            credentials[change.mechanism] = mechanism.credential(change.salt, change.salted_password, change.iterations)
            upserted.append(user)
        else:
            refused[user] = _NO_PASSWORD
            continue
        delta.set_scram_credentials(user, credentials)
    return ScramResults(tuple(deleted), tuple(upserted), refused)


def _reason_against(
    alteration: ScramDeletion | ScramUpsertion, credentials: Mapping[str, Mapping[int, ScramCredential]]
) -> Outcome | None:
    """Mirror `validateDeletion` and `validateUpsertion`."""
    if not alteration.user:
        return _NO_NAME
    mechanism = SCRAM_MECHANISMS.get(alteration.mechanism)
    if mechanism is None:
        return _NO_MECHANISM
    if isinstance(alteration, ScramDeletion):
        is_known = alteration.mechanism in credentials.get(alteration.user, ())
        return None if is_known else _NOT_FOUND
    if alteration.iterations < mechanism.min_iterations:
        return _TOO_FEW
    return _TOO_MANY if alteration.iterations > MAX_ITERATIONS else None

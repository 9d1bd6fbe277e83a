"""DescribeUserScramCredentials (key 50), version 0; mirrors `ScramImage.describe`.

Behaviour:
* returns mechanisms and iterations, never keys or salts
* a null or empty list of users describes all users
* the users are in the order of Java's hash tables
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import ScramCredential

Response = messages.DescribeUserScramCredentialsResponse


def handle_describe_user_scram_credentials(
    request: messages.DescribeUserScramCredentialsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeUserScramCredentialsResponse], None],
) -> None:
    """Describe the SCRAM credentials of users."""
    scram = context.broker.image.scram
    # In a bucket of the hash table, users with SCRAM-SHA-256 come first.
    everyone = sorted(scram, key=lambda user: min(scram[user]))
    times = Counter([user.name for user in request.users] if request.users else everyone)
    results = [
        _result(user, scram.get(user, {}), is_asked_twice=times[user] > 1) for user in hash_order(times, string_hash)
    ]
    respond(Response(results=results))


def _result(
    user: str, credentials: Mapping[int, ScramCredential], *, is_asked_twice: bool
) -> Response.DescribeUserScramCredentialsResult:
    if is_asked_twice:
        return Response.DescribeUserScramCredentialsResult(
            user,
            ErrorCode.DUPLICATE_RESOURCE,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    if not credentials:
        return Response.DescribeUserScramCredentialsResult(
            user, ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {user}"
        )
    infos = [
        Response.CredentialInfo(mechanism, credential.iterations)
        for mechanism, credential in sorted(credentials.items())
    ]
    return Response.DescribeUserScramCredentialsResult(user, credential_infos=infos)

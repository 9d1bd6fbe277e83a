"""AlterUserScramCredentials (key 51), version 0; mirrors `ControllerApis.handleAlterUserScramCredentials`.

Behaviour:
* the controller stores the credentials, and the next SCRAM login is checked against them
* one result for each user: first deletions, then upserts, then errors, each in the order of Java's hash tables
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import Outcome, ScramDeletion, ScramResults, ScramUpsertion
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext


def handle_alter_user_scram_credentials(
    request: messages.AlterUserScramCredentialsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterUserScramCredentialsResponse], None],
) -> None:
    """Delete and set SCRAM credentials."""
    deletions = [ScramDeletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        ScramUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]

    def refuse(error: ApiError) -> None:
        refused = Outcome(error.error_code, error.error_message)
        users = [each.name for each in request.deletions]
        users += [each.name for each in request.upsertions]
        respond(_response(ScramResults((), (), dict.fromkeys(users, refused))))

    context.broker.controller.call(
        lambda controller: controller.alter_user_scram_credentials(deletions, upsertions),
        lambda results: respond(_response(results)),
        refuse,
    )


def _response(results: ScramResults) -> messages.AlterUserScramCredentialsResponse:
    response = messages.AlterUserScramCredentialsResponse
    outcomes = {
        **dict.fromkeys(hash_order(results.deleted, string_hash), Outcome()),
        **dict.fromkeys(hash_order(results.upserted, string_hash), Outcome()),
        **{user: results.refused[user] for user in hash_order(results.refused, string_hash)},
    }
    return response(
        results=[
            response.AlterUserScramCredentialsResult(user, outcome.error_code, outcome.error_message)
            for user, outcome in outcomes.items()
        ]
    )

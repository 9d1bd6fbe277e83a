"""Delegation tokens (KIP-48); mirrors `KafkaApis.handleCreateTokenRequest` and its siblings.

CreateDelegationToken (key 38) and DescribeDelegationToken (41), versions 1-3; RenewDelegationToken (39) and
ExpireDelegationToken (40), versions 1-2.

Behaviour:
* a client that has not authenticated, or only with a token, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
* every client may create tokens for itself; tokens for others need CREATE_TOKENS on the user
* a token is renewed or expired by its HMAC, sent by its owner or a renewer
* tokens of others are described only with DESCRIBE on the token, or DESCRIBE_TOKENS on its owner

Version notes: 2 is flexible, 3 has owners other than the client (KIP-373).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import is_authorized
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.delegation_token import DelegationToken, token_hmac
from broker_sim.metadata.kafka_principal import USER_TYPE, KafkaPrincipal
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim.controller import Controller
    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

Created = messages.CreateDelegationTokenResponse
Described = messages.DescribeDelegationTokenResponse
REQUESTERS_VERSION: Final = 3


def handle_create_delegation_token(
    request: messages.CreateDelegationTokenRequest,
    context: RequestContext,
    respond: Callable[[messages.CreateDelegationTokenResponse], None],
) -> None:
    """Create a token for the client, or for another owner."""
    requester = owner = context.principal
    if request.owner_principal_name:
        owner = KafkaPrincipal(request.owner_principal_type or "", request.owner_principal_name)
    renewers = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.renewers]

    def refuse(code: ErrorCode, timestamp_ms: int = NO_TIMESTAMP) -> None:
        times = (timestamp_ms, timestamp_ms, timestamp_ms)
        respond(Created(code, *owner, *_requester(context, requester), *times))

    def answer(token: DelegationToken) -> None:
        times = (token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms)
        hmac = _hmac(context, token)
        fields = (*owner, *_requester(context, requester), *times)
        respond(Created(ErrorCode.NONE, *fields, token.token_id, hmac))

    code = _refusal(context, owner, renewers)
    if code is not None:
        refuse(code)
        return
    context.broker.controller.call(
        lambda controller: controller.create_delegation_token(owner, requester, renewers, request.max_lifetime_ms),
        answer,
        lambda error: refuse(error.error_code, 0),
    )


def handle_renew_delegation_token(
    request: messages.RenewDelegationTokenRequest,
    context: RequestContext,
    respond: Callable[[messages.RenewDelegationTokenResponse], None],
) -> None:
    """Extend the token's lifetime."""
    _change(
        context,
        lambda controller: controller.renew_delegation_token(
            context.principal, bytes(request.hmac), request.renew_period_ms
        ),
        lambda code, ms: respond(messages.RenewDelegationTokenResponse(code, ms)),
    )


def handle_expire_delegation_token(
    request: messages.ExpireDelegationTokenRequest,
    context: RequestContext,
    respond: Callable[[messages.ExpireDelegationTokenResponse], None],
) -> None:
    """Shorten the token's lifetime, or expire it at once."""
    _change(
        context,
        lambda controller: controller.expire_delegation_token(
            context.principal, bytes(request.hmac), request.expiry_time_period_ms
        ),
        lambda code, ms: respond(messages.ExpireDelegationTokenResponse(code, ms)),
    )


def handle_describe_delegation_token(
    request: messages.DescribeDelegationTokenRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeDelegationTokenResponse], None],
) -> None:
    """Describe the tokens of the owners; of all owners if the list is null, of none if it is empty."""
    if not context.connection.may_ask_for_tokens:
        respond(Described(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        return
    if not context.broker.config.delegation_token_secret_key:
        respond(Described(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
        return
    owners = None
    if request.owners is not None:
        owners = [KafkaPrincipal(each.principal_type, each.principal_name) for each in request.owners]
    tokens = context.broker.image.delegation_tokens
    tokens_in_order = (tokens[token_id] for token_id in hash_order(tokens, string_hash))
    rows = [_described(context, token) for token in tokens_in_order if _is_visible(context, token, owners)]
    respond(Described(tokens=rows))


def _refusal(context: RequestContext, owner: KafkaPrincipal, renewers: Iterable[KafkaPrincipal]) -> ErrorCode | None:
    """Return the error of a token that is refused before it reaches the controller."""
    if not context.connection.may_ask_for_tokens:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != context.principal and not is_authorized(
        context, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.principal_type != USER_TYPE for renewer in renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def _requester(context: RequestContext, requester: KafkaPrincipal) -> tuple[str, str]:
    """Return the type and name of the token's requester; empty in versions without them."""
    return requester if context.api_version >= REQUESTERS_VERSION else ("", "")


def _change(
    context: RequestContext, verb: Callable[[Controller], int], answer: Callable[[ErrorCode, int], None]
) -> None:
    """Make the controller change when a token expires."""
    if not context.connection.may_ask_for_tokens:
        answer(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIMESTAMP)
        return

    def refuse(error: ApiError) -> None:
        answer(error.error_code, 0)

    context.broker.controller.call(verb, lambda ms: answer(ErrorCode.NONE, ms), refuse)


def _is_visible(context: RequestContext, token: DelegationToken, owners: list[KafkaPrincipal] | None) -> bool:
    if owners is not None and not any(map(token.is_owner_or_renewer, owners)):
        return False
    return (
        token.is_owner_or_renewer(context.principal)
        or is_authorized(context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or is_authorized(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _described(context: RequestContext, token: DelegationToken) -> Described.DescribedDelegationToken:
    return Described.DescribedDelegationToken(
        *token.owner,
        *_requester(context, token.requester),
        token.issue_timestamp_ms,
        token.expiry_timestamp_ms,
        token.max_timestamp_ms,
        token.token_id,
        _hmac(context, token),
        [Described.DescribedDelegationTokenRenewer(*renewer) for renewer in token.renewers],
    )


def _hmac(context: RequestContext, token: DelegationToken) -> bytes:
    secret_key = context.broker.config.delegation_token_secret_key
    assert secret_key is not None
    return token_hmac(secret_key, token.token_id)

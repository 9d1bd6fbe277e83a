"""DescribeAcls (key 29), CreateAcls (30) and DeleteAcls (31), versions 0-3; mirrors `AclApis`.

Behaviour:
* without an authorizer all three return SECURITY_DISABLED
* each ACL is created or refused alone; creating an existing ACL is not an error
* each filter deletes the ACLs that it matches, and returns them
* an enum code of 0 closes the connection, as in Kafka, which cannot parse such a request
* an ACL with ANY, which is for filters only, fails the whole request

Version notes: 1 has pattern types (KIP-290), 2 is flexible, 3 has users as resources (KIP-373).

Deliberate difference: ACLs are sorted by their fields; Kafka lists them in the order of its hash tables.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from broker_sim.controller import DeletedAcls, Outcome
from broker_sim.errors import ErrorCode
from broker_sim.metadata.acl import CLUSTER_NAME, Acl, AclFilter, AclOperation, PatternType, Permission, ResourceType
from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext

Described = messages.DescribeAclsResponse
Created = messages.CreateAclsResponse.AclCreationResult
Deleted = messages.DeleteAclsResponse

_NO_AUTHORIZER: Final = Outcome(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def handle_describe_acls(
    request: messages.DescribeAclsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeAclsResponse], None],
) -> None:
    """List the ACLs that match the filter."""
    acl_filter = _filter(request)
    if context.broker.authorizer is None:
        text = "No Authorizer is configured on the broker"
        respond(Described(error_code=ErrorCode.SECURITY_DISABLED, error_message=text))
        return
    matching_acls = context.broker.image.acls.matching(acl_filter)
    resources = [
        Described.DescribeAclsResource(
            resource_type,
            resource_name,
            pattern_type,
            [Described.AclDescription(acl.principal, acl.host, acl.operation, acl.permission) for acl in acls],
        )
        for (resource_type, resource_name, pattern_type), acls in groupby(matching_acls, _pattern)
    ]
    respond(Described(resources=resources))


def handle_create_acls(
    request: messages.CreateAclsRequest, context: RequestContext, respond: Callable[[messages.CreateAclsResponse], None]
) -> None:
    """Create the ACLs, each one alone."""
    acls = [_acl(creation) for creation in request.creations]

    def answer(outcomes: Sequence[Outcome]) -> None:
        results = [
            # As in Kafka, a created ACL has an empty error message, not null.
            Created(outcome.error_code, outcome.error_message) if outcome.error_code else Created()
            for outcome in outcomes
        ]
        respond(messages.CreateAclsResponse(results=results))

    if context.broker.authorizer is None:
        answer([_NO_AUTHORIZER] * len(acls))
        return
    if any(map(_is_for_filters, acls)):
        answer([Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)] * len(acls))
        return
    refused = {index: refusal for index, acl in enumerate(acls) if (refusal := _refusal(acl))}
    valid = [acl for index, acl in enumerate(acls) if index not in refused]

    def merge(outcomes: Sequence[Outcome]) -> None:
        in_order = iter(outcomes)
        answer([refused.get(index) or next(in_order) for index in range(len(acls))])

    context.broker.controller.call(
        lambda controller: controller.create_acls(valid),
        merge,
        lambda error: merge([_outcome(error)] * len(valid)),
    )


def handle_delete_acls(
    request: messages.DeleteAclsRequest, context: RequestContext, respond: Callable[[messages.DeleteAclsResponse], None]
) -> None:
    """Delete the ACLs that match each filter."""
    filters = [_filter(each) for each in request.filters]

    def answer(results: Sequence[DeletedAcls]) -> None:
        respond(Deleted(filter_results=[_filter_result(result) for result in results]))

    if context.broker.authorizer is None:
        answer([DeletedAcls(_NO_AUTHORIZER)] * len(filters))
        return
    context.broker.controller.call(
        lambda controller: controller.delete_acls(filters),
        answer,
        lambda error: answer([DeletedAcls(_outcome(error))] * len(filters)),
    )


def _pattern(acl: Acl) -> tuple[ResourceType, str, PatternType]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


def _filter(fields: messages.DescribeAclsRequest | messages.DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    kind, pattern_type = fields.resource_type_filter, fields.pattern_type_filter
    _check_given(kind, pattern_type, fields.operation, fields.permission_type)
    return AclFilter(
        ResourceType(kind),
        fields.resource_name_filter,
        PatternType(pattern_type),
        fields.principal_filter,
        fields.host_filter,
        AclOperation(fields.operation),
        Permission(fields.permission_type),
    )


def _acl(creation: messages.CreateAclsRequest.AclCreation) -> Acl:
    kind, pattern_type = creation.resource_type, creation.resource_pattern_type
    _check_given(kind, pattern_type, creation.operation, creation.permission_type)
    return Acl(
        ResourceType(kind),
        creation.resource_name,
        PatternType(pattern_type),
        creation.principal,
        creation.host,
        AclOperation(creation.operation),
        Permission(creation.permission_type),
    )


def _check_given(*codes: int) -> None:
    """Raise ProtocolError, which closes the connection, for an enum code of 0."""
    if 0 in codes:
        raise ProtocolError("the enum code 0 is not allowed in an ACL request")


def _is_for_filters(acl: Acl) -> bool:
    """Whether an ACL has a value that is for filters only."""
    return (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation is AclOperation.ANY
        or acl.permission is Permission.ANY
    )


def _refusal(acl: Acl) -> Outcome | None:
    """Return the error of an ACL that is refused before it reaches the controller."""
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return Outcome(ErrorCode.INVALID_REQUEST, text)
    if not acl.resource_name:
        return Outcome(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    return None


def _filter_result(result: DeletedAcls) -> Deleted.DeleteAclsFilterResult:
    return Deleted.DeleteAclsFilterResult(
        result.outcome.error_code,
        result.outcome.error_message,
        [
            Deleted.DeleteAclsMatchingAcl(
                ErrorCode.NONE,
                None,
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission,
            )
            for acl in result.acls
        ],
    )


def _outcome(error: ApiError) -> Outcome:
    return Outcome(error.error_code, error.error_message)

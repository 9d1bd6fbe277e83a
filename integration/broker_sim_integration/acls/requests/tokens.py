"""Requests about delegation tokens of another user."""

from __future__ import annotations

from broker_sim.protocol import messages
from broker_sim_integration.acls.names import OTHER_RESOURCE, OTHER_USER, TOKENS_RESOURCE
from broker_sim_integration.acls.situation import GuardedRequest, fixed


def tokens_requests() -> list[GuardedRequest]:
    """Return requests for tokens of another user."""
    create, describe = (messages.CreateDelegationTokenRequest, messages.DescribeDelegationTokenRequest)
    kind, _, name = OTHER_USER.partition(":")
    # A client with the right gets an error about the renewers.
    creation = create(kind, name, [create.CreatableRenewers("Group", "g")])
    unknown = b"no such token"
    return [
        fixed("CreateDelegationToken", creation, 3, OTHER_RESOURCE),
        fixed("RenewDelegationToken", messages.RenewDelegationTokenRequest(unknown), 2, TOKENS_RESOURCE),
        fixed("ExpireDelegationToken", messages.ExpireDelegationTokenRequest(unknown), 2, TOKENS_RESOURCE),
        fixed("DescribeDelegationToken", describe(None), 3, TOKENS_RESOURCE),
        fixed("DescribeDelegationToken of users", describe(None), 3, OTHER_RESOURCE),
        fixed(
            "DescribeDelegationToken of a user",
            describe([describe.DescribeDelegationTokenOwner(kind, name)]),
            3,
            TOKENS_RESOURCE,
            OTHER_RESOURCE,
        ),
    ]

"""What the controller is asked for about access: SCRAM credentials, ACLs, delegation tokens."""

from collections.abc import Sequence

from broker_sim.controller.acl_control_manager import create_acls, delete_acls
from broker_sim.controller.delegation_token_control_manager import DelegationTokenControlManager
from broker_sim.controller.metadata_changes import MetadataChanges
from broker_sim.controller.requests import DeletedAcls, Outcome, ScramDeletion, ScramResults, ScramUpsertion
from broker_sim.controller.scram_control_manager import alter_scram_credentials
from broker_sim.metadata.acl import Acl, AclFilter
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.kafka_principal import KafkaPrincipal


class SecurityRequests(MetadataChanges):
    """The part of `Controller` that serves them."""

    _tokens: DelegationTokenControlManager

    def alter_user_scram_credentials(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> ScramResults:
        """Delete and set SCRAM credentials, each for itself."""
        with self._change() as delta:
            return alter_scram_credentials(delta, deletions, upsertions)

    def create_acls(self, acls: Sequence[Acl]) -> list[Outcome]:
        """Add rules of access control, each for itself; a rule that exists already is no error."""
        with self._change() as delta:
            return create_acls(delta, acls)

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        """Remove the rules that each filter matches; one result per filter."""
        with self._change() as delta:
            return delete_acls(delta, filters)

    def create_delegation_token(
        self, owner: KafkaPrincipal, requester: KafkaPrincipal, renewers: Sequence[KafkaPrincipal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Make a token for the owner. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.create(delta, owner, requester, renewers, max_lifetime_ms)

    def renew_delegation_token(self, principal: KafkaPrincipal, hmac: bytes, renew_period_ms: int) -> int:
        """Renew the token of that HMAC; returns when it ends now. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.renew(delta, principal, hmac, renew_period_ms)

    def expire_delegation_token(self, principal: KafkaPrincipal, hmac: bytes, period_ms: int) -> int:
        """Let the token of that HMAC end sooner, or at once; returns when it ends. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.expire(delta, principal, hmac, period_ms)

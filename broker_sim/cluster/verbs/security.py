"""Verbs on access rights, passwords and certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import verb, waiting_verb
from broker_sim.errors import WrongStateError

if TYPE_CHECKING:
    from broker_sim.handlers.denial_log import DenialsStatus
    from broker_sim.security import KeySet


class SecurityVerbs(BaseVerbs):
    """The verbs on access rights (with `authorizer.class.name`), passwords and certificates."""

    @waiting_verb()
    async def grant(
        self, principal: str, operation: str, resource: str, *, host: str = "*", deny: bool = False
    ) -> None:
        """Add an ACL: `grant("User:billing", "READ", "topic:orders")`.

        Returns when every running broker that can be reached has it. `resource` is `topic:orders`,
        `topic:ord*` for a prefix, `topic:*`, or `cluster`; likewise `group:` and
        `transactional_id:`. A principal without a type is a user. `deny` adds a denying ACL, which takes precedence
        over allowing ones. Raises WrongStateError without an authorizer.
        """
        from broker_sim.cluster.text_forms import parse_acl  # noqa: PLC0415 - see `Verbs`
        from broker_sim.errors import ApiError  # noqa: PLC0415 - see `Verbs`

        self._check_guarded()
        acl = parse_acl(principal, operation, resource, host, deny=deny)
        (outcome,) = self.nodes.controller.create_acls([acl])
        if not outcome.ok:
            raise ApiError(outcome.error_code, outcome.error_message or "")
        await self._until_brokers_have_acls(f"the brokers to learn of the rights of {acl.principal}")

    @waiting_verb()
    async def revoke(
        self, principal: str, operation: str, resource: str, *, host: str = "*", deny: bool = False
    ) -> None:
        """Remove an ACL that was added with the same arguments, or by a client.

        Later requests are refused, even on open connections. Raises LookupError if there is no such ACL.
        """
        from broker_sim.cluster.text_forms import parse_acl  # noqa: PLC0415 - see `Verbs`
        from broker_sim.metadata.acl import AclFilter  # noqa: PLC0415 - see `Verbs`

        self._check_guarded()
        acl = parse_acl(principal, operation, resource, host, deny=deny)
        (deleted,) = self.nodes.controller.delete_acls([AclFilter(*acl)])
        if not deleted.acls:
            raise LookupError(f"unknown ACL: {acl}")
        await self._until_brokers_have_acls(f"the brokers to forget rights of {acl.principal}")

    @verb("GET", "/denials")
    def denials(self, principal: str | None = None) -> DenialsStatus:
        """Return the last 10 000 denied requests, in order, for one principal or all.

        The same as Kafka's audit log: resources that were only left out of a list are not in it.
        """
        return self.nodes.denials.find(principal)

    @verb()
    def end_connections(self, principal: str) -> None:
        """Abort all connections of a principal: `end_connections("User:billing")`.

        Kafka has no counterpart: there a connection outlives its credential until it has to log in again
        (`connections.max.reauth.ms`). A principal without a type is a user; clients that have not logged in are
        `User:ANONYMOUS`.
        """
        from broker_sim.security import KafkaPrincipal  # noqa: PLC0415 - see `Verbs`

        text = principal if ":" in principal else f"User:{principal}"
        self.listeners.end_connections_of(KafkaPrincipal.parse(text))

    @waiting_verb()
    async def set_password(self, user: str, password: str) -> None:
        """Change a user's password: `set_password("billing", "new")`.

        Later logins need it, by PLAIN, and by SCRAM if the user has a credential; connections stay open until they have
        to log in again. `client_config` returns the new password, so an application that was configured before has the
        wrong one. Returns when every running broker that can be reached has it; `reset` restores the old one. Raises
        LookupError if there is no such user, ConfigError for an empty password.
        """
        from broker_sim.cluster.listeners.broker_listeners import check_user, with_password  # noqa: PLC0415 - see `Verbs`

        check_user(user, password)
        sasl = [each for listeners in self.listeners.all for each in listeners.sasl.values()]
        by_plain = [each.users for each in sasl if user in each.users.passwords]
        controller = self.nodes.controller
        by_scram = controller.image.scram.get(user, {})
        if not by_plain and not by_scram:
            raise LookupError(f"unknown user {user!r}")
        for users in by_plain:
            users.set_password(user, password)
        for upsertion in with_password(user, by_scram, password):
            controller.alter_user_scram_credentials([], [upsertion])
        await self._until_brokers_have(controller.image.version, f"the brokers to learn of the password of {user}")

    @verb()
    def renew_certificates(self, *, expired: bool = False, wrong_host: bool = False) -> None:
        """Give all brokers new certificates from the next connection on; open connections stay.

        The cluster makes its certificates again: with `expired` they expired in 2021, with `wrong_host` they are for
        another host; clients refuse both. A key store is read again. `reset` restores valid certificates. Raises
        WrongStateError without a listener with TLS, or for a bad certificate of a listener with a key store;
        ConfigError for a key store that cannot be read.
        """
        secured = [ssl for listeners in self.listeners.all for ssl in listeners.ssl.values()]
        if not secured:
            raise WrongStateError("no listener has TLS; open the cluster with security='ssl'")
        for ssl in secured:
            ssl.renew(expired=expired, wrong_host=wrong_host)

    @verb("GET", "/jwks")
    def key_set(self) -> KeySet:
        """Return the key with which the cluster signs tokens, as a JSON Web Key Set.

        `GET /jwks` of the control port can be the `sasl.oauthbearer.jwks.endpoint.url` of other clusters. Raises
        WrongStateError if no listener accepts tokens that the cluster signs.
        """
        sasl = [each for listeners in self.listeners.all for each in listeners.sasl.values()]
        if not any(each.own_token for each in sasl):
            raise WrongStateError("no listener accepts tokens that the cluster signs")
        return self.token_issuer.key_set

    def _check_guarded(self) -> None:
        """Raise WrongStateError without an authorizer."""
        if not self.nodes.has_authorizer:
            raise WrongStateError("there is no authorizer; set authorizer.class.name (docs/operate/security.md)")

    async def _until_brokers_have_acls(self, what: str) -> None:
        await self._until_brokers_have(self.nodes.controller.image.version, what)

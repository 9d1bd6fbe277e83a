"""Verbs on the requests of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import verb, waiting_verb
from broker_sim.errors import WrongStateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.cluster.status.clients_status import ClientsMetrics, ClientsStatus
    from broker_sim.handlers.faults import Fault, HookedRequest, InjectedFault
    from broker_sim.handlers.request_log import RequestsStatus
    from broker_sim.protocol.api_keys import ApiKey


TURNS_TO_SEE_AN_END: Final = 5
"""Turns of the event loop until a connection that its client has closed is noticed; TLS needs the most."""


class RequestVerbs(BaseVerbs):
    """The verbs on requests of clients."""

    @verb(path="/inject")
    def inject(self, fault: Fault) -> InjectedFault:
        """Inject a fault, which hits requests of clients from now on; return its handle."""
        from broker_sim.handlers.faults import Fault as FaultClass  # noqa: PLC0415 - see `Verbs`

        if not isinstance(fault, FaultClass):
            raise TypeError(f"inject takes a Fault, such as Fault(api='Produce', delay_ms=100), not {fault!r}")
        if fault.broker is not None:
            self.nodes.node(fault.broker)
        return self.nodes.faults.inject(fault)

    def hook(
        self,
        api: str | ApiKey,
        function: Callable[[HookedRequest], object],
        *,
        broker: int | None = None,
        count: int | None = None,
    ) -> InjectedFault:
        """Call `function(request)` for requests of an API from now on; it may answer, delay or lose them.

        A request is handled normally unless the function calls a method of `HookedRequest`. The function runs on the
        cluster's event loop: it must neither wait nor call a `Cluster`. `count` is the maximum number of calls
        (default: no limit). Returns a handle as `inject` does.
        """
        from broker_sim.handlers.faults import Hook  # noqa: PLC0415 - see `Verbs`

        return self.inject(Hook(api, function, broker=broker, count=count))

    @waiting_verb("GET", "/clients")
    async def clients(self) -> ClientsStatus:
        """Return the connections of clients to all brokers, with client id, address and last API.

        Connections that clients closed before the call are not included.
        """
        import asyncio  # noqa: PLC0415 - see `Verbs`

        from broker_sim.cluster.status.clients_status import clients_status  # noqa: PLC0415 - see `Verbs`

        for _ in range(TURNS_TO_SEE_AN_END):
            await asyncio.sleep(0)
        return clients_status(self.listeners)

    @verb("GET", "/client-metrics")
    def client_metrics(self) -> ClientsMetrics:
        """Return the last metrics that each client has pushed (KIP-714), the most recent client last.

        Clients push while `metric.reporters` names a class that is not Kafka's own, such as
        `configs={"metric.reporters": "example.Telemetry"}`, and subscriptions, which are configurations of
        CLIENT_METRICS resources, ask for metrics. Raises WrongStateError without such a class.
        """
        from broker_sim.cluster.status.clients_status import ClientsMetrics  # noqa: PLC0415 - see `Verbs`

        if not self.nodes.takes_client_metrics:
            raise WrongStateError(
                "clients push no metrics; open the cluster with configs={'metric.reporters': 'example.Telemetry'}"
            )
        return ClientsMetrics(self.nodes.client_metrics.statuses())

    @verb("DELETE", "/inject/{fault_id}")
    def heal(self, fault_id: int | None = None) -> None:
        """Remove one injected fault, or all of them.

        Raises LookupError for an unknown id.
        """
        self.nodes.faults.heal(fault_id)

    @waiting_verb()
    async def set_quotas(
        self,
        client_id: str | None = None,
        user: str | None = None,
        ip: str | None = None,
        *,
        producer_byte_rate: float | None = None,
        consumer_byte_rate: float | None = None,
        request_percentage: float | None = None,
        controller_mutation_rate: float | None = None,
        connection_creation_rate: float | None = None,
    ) -> None:
        """Set the quotas of a client id, a user, both together, or an address, and remove its other quotas.

        "<default>" stands for all without quotas of their own. Without a quota, all quotas are removed. Returns when
        every running broker that can be reached has them. Raises ApiError with the errors of AlterClientQuotas.
        """
        from broker_sim.controller import quotas_to_set  # noqa: PLC0415 - see `Verbs`
        from broker_sim.errors import ApiError  # noqa: PLC0415 - see `Verbs`
        from broker_sim.runtime.arguments import check_can_be_sent  # noqa: PLC0415 - see `Verbs`

        check_can_be_sent(client_id, user, ip)
        controller = self.nodes.controller
        alteration = quotas_to_set(
            controller.image,
            {"client-id": client_id, "user": user, "ip": ip},
            {
                "producer_byte_rate": producer_byte_rate,
                "consumer_byte_rate": consumer_byte_rate,
                "request_percentage": request_percentage,
                "controller_mutation_rate": controller_mutation_rate,
                "connection_creation_rate": connection_creation_rate,
            },
        )
        outcome = controller.alter_client_quotas([alteration])[alteration.entity]
        if not outcome.ok:
            raise ApiError(outcome.error_code, outcome.error_message or "")
        await self._until_brokers_have(controller.image.version, "the brokers to learn of the quotas")

    @verb()
    def keep_requests(self, count: int = 1_000) -> None:
        """Record from now on the last `count` requests of clients and their responses, for `requests`.

        Older ones are dropped; 0 ends the recording. Messages are recorded in full, with their records.
        """
        if count < 0:
            raise ValueError(f"'count' must be at least 0, not {count}")
        self.nodes.requests.keep(count)

    @verb("GET", "/requests")
    def requests(self, api: str | None = None, client_id: str | None = None) -> RequestsStatus:
        """Return the recorded requests of clients, in the order of their arrival.

        `api` is Kafka's name of an API, in upper or lower case. Raises WrongStateError unless `keep_requests` was
        called.
        """
        from broker_sim.handlers.faults import served_api  # noqa: PLC0415 - see `Verbs`

        requests = self.nodes.requests
        if not requests.limit:
            raise WrongStateError(
                "requests are not recorded; call keep_requests() first, or `broker-sim ctl keep-requests`"
            )
        return requests.find(None if api is None else served_api(api), client_id)

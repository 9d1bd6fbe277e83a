"""The HTTP application: the verbs of `AsyncCluster`, JSON in and out.

An error is ``{"error": "..."}`` with status 400 for a request that makes no sense, 404 for what
does not exist, 409 for a verb that does not fit the broker's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from broker_sim.cluster.nodes import UnknownBrokerError, WrongStateError
from broker_sim.control.bodies import BadRequestError, Body, parse_body
from broker_sim.control.metrics import CONTENT_TYPE, MetricsUnavailableError, metrics_text
from broker_sim.errors import ApiError
from broker_sim.handlers.faults import Fault

if TYPE_CHECKING:
    import socket

    from aiohttp.typedefs import Handler

    from broker_sim.cluster.async_cluster import AsyncCluster

__all__ = ["serve"]

BROKER_DEFAULT = -1
STATUS_OF_ERROR: dict[type[Exception], int] = {
    BadRequestError: 400,
    ApiError: 400,
    UnknownBrokerError: 404,
    WrongStateError: 409,
    MetricsUnavailableError: 501,
    OSError: 409,
}


async def serve(cluster: AsyncCluster, listening: socket.socket) -> web.AppRunner:
    """Serve the cluster on a socket that listens; ends with the runner's ``cleanup``."""
    runner = web.AppRunner(_build_app(cluster), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    return runner


def _build_app(cluster: AsyncCluster) -> web.Application:
    control = _Control(cluster)
    app = web.Application(middlewares=[_errors_as_json])
    app.add_routes(
        [
            web.get("/status", control.status),
            web.get("/purgatory", control.purgatory),
            web.get("/metrics", control.metrics),
            web.post("/brokers/{id}/{verb}", control.broker),
            web.post("/links", control.link),
            web.post("/topics", control.topic),
            web.post("/inject", control.inject),
            web.delete("/inject", control.heal),
            web.delete("/inject/{id}", control.heal),
        ]
    )
    return app


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        text = f"{request.method} {request.path}: {error.reason}"
        return web.json_response({"error": text}, status=error.status)
    except tuple(STATUS_OF_ERROR) as error:
        status = next(code for kind, code in STATUS_OF_ERROR.items() if isinstance(error, kind))
        text = str(getattr(error, "strerror", None) or error)
        return web.json_response({"error": text}, status=status)


class _Control:
    """The handlers; all run on the cluster's event loop."""

    def __init__(self, cluster: AsyncCluster) -> None:
        self._cluster = cluster

    async def status(self, _: web.Request) -> web.Response:
        """GET /status."""
        return web.json_response(self._cluster.status())

    async def purgatory(self, _: web.Request) -> web.Response:
        """GET /purgatory."""
        return web.json_response(self._cluster.purgatory())

    async def metrics(self, _: web.Request) -> web.Response:
        """GET /metrics."""
        body = metrics_text(self._cluster.nodes)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def broker(self, request: web.Request) -> web.Response:
        """POST /brokers/{id}/{verb}: answers with the broker's status."""
        (await _body(request)).end()
        broker_id = _broker_id(request.match_info["id"])
        cluster = self._cluster
        match request.match_info["verb"]:
            case "pause":
                cluster.pause(broker_id)
            case "resume":
                cluster.resume(broker_id)
            case "kill":
                cluster.kill(broker_id)
            case "start":
                await cluster.restart(broker_id)
            case "disconnect":
                cluster.disconnect(broker_id)
            case "reconnect":
                cluster.reconnect(broker_id)
            case "disconnect-clients":
                cluster.disconnect_clients(broker_id)
            case "reconnect-clients":
                cluster.reconnect_clients(broker_id)
            case _:
                raise web.HTTPNotFound
        return web.json_response(_row_of(cluster.status()["brokers"], broker_id))

    async def link(self, request: web.Request) -> web.Response:
        """POST /links {"from", "to", "drop", "delay_ms"}: answers with all faulty links."""
        body = await _body(request)
        source, target = body.take("from", int), body.take("to", int)
        drop, delay_ms = body.take("drop", bool, default=False), body.take("delay_ms", int, 0)
        body.end()
        if source == target:
            raise BadRequestError(f"a link goes to another broker, not from {source} to {target}")
        if delay_ms < 0:
            raise BadRequestError(f"'delay_ms' must be at least 0, not {delay_ms}")
        self._cluster.set_link(source, target, drop=drop, delay_ms=delay_ms)
        return web.json_response({"links": self._cluster.status()["links"]})

    async def topic(self, request: web.Request) -> web.Response:
        """POST /topics {"name", "partitions", "replication_factor", "configs"}."""
        body = await _body(request)
        name = body.take("name", str)
        partitions = body.take("partitions", int, BROKER_DEFAULT)
        replication_factor = body.take("replication_factor", int, BROKER_DEFAULT)
        configs = body.take_texts("configs")
        body.end()
        self._cluster.create_topic(name, partitions, replication_factor, configs)
        topics = self._cluster.status()["topics"]
        return web.json_response(next(topic for topic in topics if topic["name"] == name))

    async def inject(self, request: web.Request) -> web.Response:
        """POST /inject {"api", "broker", "topic", "partition", "error", "lose", "delay_ms", "count"}.

        Answers with the fault as /status shows it.
        """
        injected = self._cluster.inject(_fault(await _body(request)))
        return web.json_response(injected.to_json())

    async def heal(self, request: web.Request) -> web.Response:
        """DELETE /inject/{id}, or /inject for all: answers with the faults that stay."""
        text = request.match_info.get("id")
        try:
            self._cluster.heal(None if text is None else int(text))
        except (LookupError, ValueError):
            raise web.HTTPNotFound(reason=f"there is no fault {text}") from None
        return web.json_response({"faults": self._cluster.status()["faults"]})


def _fault(body: Body) -> Fault:
    fields: dict[str, Any] = {"api": body.take("api", str)}
    for name in ("topic", "error", "lose"):
        fields[name] = body.take_optional(name, str)
    for name in ("broker", "partition", "count"):
        fields[name] = body.take_optional(name, int)
    fields["delay_ms"] = body.take("delay_ms", int, 0)
    body.end()
    try:
        return Fault(**fields)
    except ValueError as error:
        raise BadRequestError(str(error)) from error


async def _body(request: web.Request) -> Body:
    return parse_body(await request.read())


def _broker_id(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadRequestError(f"a broker's id is a number, not {text!r}") from None


def _row_of(rows: list[dict[str, Any]], number: int) -> dict[str, Any]:
    return next(row for row in rows if row["id"] == number)

"""The HTTP application: every verb of the cluster at its address, JSON in and out.

The fields of a body are the parameters of the verb. The response is the result of the verb; for a verb without a
result it is the broker's status, if the verb acts on a broker, otherwise the cluster's. An error is
`{"error": "..."}` with status 400 for an invalid request, 401, 403 or 415 if the guard refuses it, 404 if something
does not exist, 409 if the broker's state does not allow the verb, 501 for a missing extra, and 504 for a timeout.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from broker_sim.control.bodies import BadRequestError, Body, parse_body, parse_number
from broker_sim.control.guard import RefusedRequestError
from broker_sim.control.page import Page
from broker_sim.control.server import LISTEN_BACKLOG
from broker_sim.control.verb import verbs_of
from broker_sim.errors import ApiError, ClusterTimeoutError, MissingExtraError, WrongStateError, did_you_mean
from broker_sim.handlers.faults import Fault
from broker_sim.runtime.acceptor import accept_connections
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from aiohttp.typedefs import Handler, Middleware

    from broker_sim.control.guard import Guard
    from broker_sim.control.server import ControlledCluster
    from broker_sim.control.verb import Verb
    from broker_sim.runtime.system import StandardSocket

CLOSE_TIMEOUT_S = 1.0
"""Seconds that closing the cluster waits for unfinished requests, such as half a body."""
MAX_BODY_BYTES = 64 * 1_048_576
"""Largest body of a request in bytes; larger ones are refused with 413."""
METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type that Prometheus expects."""
_QUOTED = re.compile(r"[:\n]|b?['\"]")
"""Matches the start of aiohttp's quotation of a malformed request, whose headers may contain the token."""
STATUS_OF_ERROR: dict[type[Exception], int] = {
    ValueError: 400,
    ApiError: 400,
    LookupError: 404,
    WrongStateError: 409,
    MissingExtraError: 501,
    ClusterTimeoutError: 504,
    OSError: 409,
}

log = get_logger(__name__)


async def serve(cluster: ControlledCluster, listening: StandardSocket, guard: Guard) -> Callable[[], Awaitable[None]]:
    """Serve the cluster on a listening socket; return a function that closes the port.

    It closes connections after `CLOSE_TIMEOUT_S`, or once their requests are answered.
    """
    runner = web.AppRunner(
        _build_app(cluster, guard), access_log=None, logger=_server_logger(), shutdown_timeout=CLOSE_TIMEOUT_S
    )
    try:
        await runner.setup()
        assert runner.server is not None
        accepting = await accept_connections(asyncio.get_running_loop(), listening, runner.server, LISTEN_BACKLOG)
    except BaseException:
        await runner.cleanup()
        raise

    async def close() -> None:
        accepting.close()
        await runner.cleanup()

    return close


def _server_logger() -> logging.Logger:
    """Return aiohttp's logger, which logs a malformed request as one line instead of a traceback."""
    logger = logging.getLogger(f"{__name__}.http")
    logger.addFilter(_shorten_malformed)
    return logger


def _shorten_malformed(record: logging.LogRecord) -> bool:
    """Log a malformed request as an event; return whether to log aiohttp's own record."""
    error = record.exc_info and record.exc_info[1]
    if not isinstance(error, HttpProcessingError):
        return True
    log.warning("malformed_request", reason=_QUOTED.split(error.message, maxsplit=1)[0].strip())
    return False


def _build_app(cluster: ControlledCluster, guard: Guard) -> web.Application:
    app = web.Application(middlewares=[_errors_as_json, _guarded_by(guard)], client_max_size=MAX_BODY_BYTES)
    for verb in verbs_of(type(cluster)).values():
        address = verb.address
        handler = partial(_carry_out, cluster, verb)
        app.router.add_route(address.method, address.path, handler)
        shorter = address.path
        for name in _names_in(address.path):
            if not _is_required(verb, name):
                shorter = shorter.replace(f"/{{{name}}}", "")
        if shorter != address.path:
            app.router.add_route(address.method, shorter, handler)
    Page(cluster, guard).add_to(app)
    return app


def _guarded_by(guard: Guard) -> Middleware:
    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        local = request.transport and request.transport.get_extra_info("sockname")
        guard.check_names(name.decode("latin-1") for name, _ in request.raw_headers)
        guard.admit(
            request.method,
            request.headers,
            local_address=local[0] if local else "",
            has_body=request.can_read_body,
            path=request.path,
        )
        return await handler(request)

    return guarded


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        text = f"{request.method} {request.path}: {error.reason}{_nearest_address(request)}"
        return web.json_response({"error": text}, status=error.status)
    except RefusedRequestError as error:
        return web.json_response({"error": str(error)}, status=error.status)
    except tuple(STATUS_OF_ERROR) as error:
        status = next(code for kind, code in STATUS_OF_ERROR.items() if isinstance(error, kind))
        text = str(getattr(error, "strerror", None) or error)
        return web.json_response({"error": text}, status=status)


def _nearest_address(request: web.Request) -> str:
    """Return ` (did you mean METHOD PATH?)` with the verb whose address is nearest to the request's, "" if none is."""
    parts = request.path.split("/")
    addresses = []
    for resource in request.app.router.resources():
        path = resource.canonical.split("/")
        if len(path) == len(parts):
            filled = [part if name.startswith("{") else name for name, part in zip(path, parts, strict=True)]
            addresses += [f"{route.method} {'/'.join(filled)}" for route in resource if route.method != "HEAD"]
    return did_you_mean(f"{request.method} {request.path}", addresses)


async def _carry_out(cluster: ControlledCluster, verb: Verb[..., Any], request: web.Request) -> web.Response:
    body = parse_body(await request.read())
    arguments = _arguments(verb, request.match_info, body)
    result = getattr(cluster, verb.name)(**arguments)
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, str):
        content_type = METRICS_CONTENT_TYPE if verb.name == "metrics" else "text/plain; charset=utf-8"
        return web.Response(body=result.encode(), headers={"Content-Type": content_type})
    if result is None:
        # Connections that a verb such as kill has cut are closed in the next turn of the loop; the answer follows it.
        await asyncio.sleep(0)
        status = cluster.status()
        is_there = verb.is_for_brokers and verb.address.method != "DELETE"
        result = status.broker(arguments["broker_id"]) if is_there else status
    return web.json_response(result.to_json())


def _arguments(verb: Verb[..., Any], path: Mapping[str, str], body: Body) -> dict[str, Any]:
    """Return the verb's arguments from path and body. Raises BadRequestError."""
    arguments: dict[str, Any] = {}
    for name in verb.parameters:
        annotation = verb.annotation(name)
        if name in path:
            arguments[name] = path[name] if annotation == "str" else parse_number(name, path[name])
        elif annotation == "Fault":
            arguments[name] = _fault(body)
        elif name not in _names_in(verb.address.path):
            field = verb.address.fields.get(name, name)
            required = _is_required(verb, name)
            value = body.take_parameter(field, annotation, required=required)
            if value is not None or required:
                arguments[name] = value
    body.end()
    return arguments


def _fault(body: Body) -> Fault:
    fields = inspect.signature(Fault).parameters
    values: dict[str, Any] = {name: body.take_any(name) for name in fields}
    body.end()
    if values["api"] is None:
        raise BadRequestError("'api' is missing: the name of an API such as Produce expected")
    try:
        return Fault(**{name: value for name, value in values.items() if value is not None})
    except (TypeError, ValueError) as error:
        raise BadRequestError(str(error)) from error


def _names_in(path: str) -> list[str]:
    return re.findall(r"{(\w+)}", path)


def _is_required(verb: Verb[..., Any], name: str) -> bool:
    return verb.parameters[name].default is inspect.Parameter.empty

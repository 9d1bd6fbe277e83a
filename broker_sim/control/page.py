"""The page at the control port: its files, its stream of pictures, and its session.

    GET /              the page; it contains no data, so it needs no token
    GET /page/FILE     its modules and its style
    GET /page/session  the token that the page sends with writes, and the verbs with a button
    GET /page/stream   server-sent events: each has the parts of the picture that changed

No pictures are made while no page is open, and a page that is not visible closes its stream. The period of the
pictures is chosen so that all streams together take at most `SHARE` of a core, however many operations are parked.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from broker_sim.control.forms import forms_of
from broker_sim.page import files
from broker_sim.page.changes import changes

if TYPE_CHECKING:
    from broker_sim.control.guard import Guard
    from broker_sim.control.server import ControlledCluster

SHARE: Final = 0.012
"""Maximum share of a core for making the pictures of all streams; with sending it is below 0.02."""
SHORTEST_PERIOD_S: Final = 0.25
LONGEST_PERIOD_S: Final = 30.0
LONGEST_SEARCH: Final = 249
"""Maximum length of a search in characters: that of a topic name."""


class Page:
    """The page of one cluster at its control port."""

    def __init__(self, cluster: ControlledCluster, guard: Guard) -> None:
        self._cluster = cluster
        self._guard = guard
        self._streams: set[asyncio.Task[Any]] = set()

    def add_to(self, app: web.Application) -> None:
        """Add the routes of the page to an application."""
        app.router.add_get("/", self._html)
        app.router.add_get("/page/session", self._session)
        app.router.add_get("/page/stream", self._stream)
        app.router.add_get("/page/{name}", self._file)
        app.on_shutdown.append(self._end_streams)

    async def _html(self, _: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": files.live_policy(), "Cache-Control": "no-cache"}
        return web.Response(text=files.live_html(), content_type="text/html", headers=headers)

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in files.names():
            raise web.HTTPNotFound
        content_type = files.CONTENT_TYPES[name[name.rindex(".") :]]
        return web.Response(text=files.read(name), content_type=content_type, headers={"Cache-Control": "no-cache"})

    async def _session(self, _: web.Request) -> web.Response:
        session = {
            "page_token": self._guard.page_token,
            "read_only": self._guard.is_read_only,
            "verbs": forms_of(type(self._cluster)),
        }
        return web.json_response(session, headers={"Cache-Control": "no-store"})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        shown = (
            request.query.get("search", "")[:LONGEST_SEARCH],
            _number(request.query.get("level")),
            _number(request.query.get("bucket")),
        )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            with suppress(ConnectionResetError):  # the page was closed
                await self._send_pictures(response, shown)
        finally:
            self._streams.discard(task)
        return response

    async def _send_pictures(self, response: web.StreamResponse, shown: tuple[str, int, int]) -> None:
        before: dict[str, Any] = {}
        self._cluster.picture(*shown)  # the first call imports modules, which must not count as cost
        while True:
            start_s = time.thread_time()
            picture = self._cluster.picture(*shown)
            event = {"at_ms": picture.at_ms, **changes(before, picture.parts)}
            before = picture.parts
            text = json.dumps(event, separators=(",", ":"))
            cost_s = time.thread_time() - start_s
            await response.write(f"data: {text}\n\n".encode())
            await asyncio.sleep(period_s(cost_s, len(self._streams)))

    async def _end_streams(self, _: web.Application) -> None:
        for task in self._streams:
            task.cancel()


def period_s(cost_s: float, streams: int) -> float:
    """Return the seconds until the next picture of a stream after one that took `cost_s` seconds of CPU time."""
    return min(max(SHORTEST_PERIOD_S, cost_s * streams / SHARE), LONGEST_PERIOD_S)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0

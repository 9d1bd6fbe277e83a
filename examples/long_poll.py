"""An HTTP long poll: GET /news?after=N is answered when there is news after N, or after 30 s.

It needs `pip install aiohttp`. Run it with `python examples/long_poll.py`, then in two shells:

    curl 'http://127.0.0.1:8080/news?after=0'
    curl -d 'it rains' http://127.0.0.1:8080/news

Thousands of polls may wait: each is one parked operation, and all of them share one timer of the loop.
"""

from aiohttp import web
from broker_sim_purgatory import AwaitableOperation, DelayedOperationPurgatory, LoopTimer, wait_until

MAX_WAIT_S = 30.0
NEWS = "news"


class Board:
    """A list of texts that clients read from a position onwards."""

    def __init__(self, max_wait_s: float = MAX_WAIT_S) -> None:
        self._texts: list[str] = []
        self._max_wait_s = max_wait_s
        self.polls: DelayedOperationPurgatory[AwaitableOperation[list[str]]] = DelayedOperationPurgatory(
            "polls", LoopTimer("polls")
        )

    async def read(self, request: web.Request) -> web.Response:
        """Answer with the texts after a position; wait if there are none."""
        after = int(request.query.get("after", "0"))
        texts = await wait_until(lambda: self._texts[after:], self.polls, [NEWS], self._max_wait_s)
        return web.json_response({"texts": texts, "next": len(self._texts)})

    async def write(self, request: web.Request) -> web.Response:
        """Add a text, and answer the polls that wait for one."""
        self._texts.append(await request.text())
        answered = self.polls.check_and_complete(NEWS)
        return web.json_response({"answered": answered})


async def build_app(max_wait_s: float = MAX_WAIT_S) -> web.Application:
    """Return the application; waiting polls are dropped at shutdown."""
    board = Board(max_wait_s)

    async def end(_: web.Application) -> None:
        board.polls.shutdown(complete_parked=True)

    app = web.Application()
    app.add_routes([web.get("/news", board.read), web.post("/news", board.write)])
    app.on_shutdown.append(end)
    return app


if __name__ == "__main__":
    web.run_app(build_app(), host="127.0.0.1", port=8080)

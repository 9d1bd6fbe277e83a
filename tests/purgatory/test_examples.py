"""The programs of examples/ do what they say."""

import asyncio
import runpy
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

EXAMPLES = Path(__file__).parents[2] / "examples"


def _example(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_a_batch_leaves_when_it_is_full_and_the_rest_at_the_deadline(capsys):
    _example("batching")["main"]()
    assert capsys.readouterr().out.splitlines() == [
        " 35 ms: item-0 item-1 item-2 item-3 item-4 item-5 item-6",
        " 90 ms: item-7 item-8",
    ]


def test_the_tenth_member_opens_the_barrier_for_all_ten(capsys):
    runpy.run_path(str(EXAMPLES / "join_barrier.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:11] == ["all ten come:", *(f"0.9 s: member-{number} goes on with 10" for number in range(10))]
    assert lines[11:] == ["three are missing:", *(f"5.0 s: member-{number} goes on with 7" for number in range(7))]


def _with_board(talk, max_wait_s):
    """Serve the board and let `talk` have a client of it and the purgatory."""

    async def main():
        app = await _example("long_poll")["build_app"](max_wait_s)
        async with TestClient(TestServer(app)) as client:
            return await asyncio.wait_for(talk(client), 60)

    return asyncio.run(main())


@pytest.mark.threads
def test_a_text_answers_every_poll_that_waits_for_it():
    polls = 20

    async def read(client):
        async with client.get("/news?after=0") as response:
            return await response.json()

    async def talk(client):
        readers = [asyncio.create_task(read(client)) for _ in range(polls)]
        answered = 0
        # Polls that arrive after the first text are answered by it without waiting.
        for text in ("it rains", "it still rains"):
            async with client.post("/news", data=text) as response:
                answered += (await response.json())["answered"]
        answers = await asyncio.gather(*readers)
        assert answered <= polls
        assert all(answer["texts"][0] == "it rains" for answer in answers)

    _with_board(talk, 30)


@pytest.mark.threads
def test_a_poll_without_news_is_answered_empty_at_its_deadline():
    async def talk(client):
        async with client.get("/news?after=0") as response:
            assert await response.json() == {"texts": [], "next": 0}

    _with_board(talk, 0.05)

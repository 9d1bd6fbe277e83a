"""Fixtures that run a coroutine in virtual time, or in both."""

from __future__ import annotations

import asyncio

import pytest

from broker_sim.runtime.virtual import run as run_virtual


class Run:
    """Runs `main()` on a new virtual loop and keeps that loop for a look at it."""

    def __call__(self, main, **options):
        def start(loop):
            self.loop = loop
            return main()

        return run_virtual(start, **options)


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture(params=["real", "virtual"])
def run_either(request):
    """Run on a real loop with real sockets, and on a virtual one: what they do must be the same."""
    if request.param == "virtual":
        return Run()

    def run_real(main):
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            return runner.run(main())

    return run_real

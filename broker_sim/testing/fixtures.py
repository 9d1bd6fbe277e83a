"""Runs fixtures of function scope, also async ones, on the virtual loop of one seed."""

from __future__ import annotations

import asyncio
import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from broker_sim.runtime.virtual import VirtualRun


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a fixture's function is a coroutine or an asynchronous generator."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def on_the_loop(function: Callable[..., Any], request: pytest.FixtureRequest, run: VirtualRun) -> Callable[..., Any]:
    """Return a function for pytest in place of the fixture's function, which runs it on the loop."""
    function = _bound(function, request.instance)
    if inspect.isasyncgenfunction(function):
        return wraps(function)(_async_generator(function, run))
    if inspect.iscoroutinefunction(function):
        return wraps(function)(_coroutine(function, run))
    if inspect.isgeneratorfunction(function):
        return wraps(function)(_generator(function, run))
    return wraps(function)(_function(function, run))


def _bound(function: Any, instance: object) -> Callable[..., Any]:
    """Bind the method of a test class to the instance of the test, as pytest does."""
    owner = getattr(function, "__self__", None)
    if owner is None or not isinstance(instance, type(owner)):
        bound: Callable[..., Any] = function
    else:
        bound = function.__func__.__get__(instance)
    return bound


def _function(function: Callable[..., Any], run: VirtualRun) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return run.call(function, *args, **kwargs)

    return call


def _coroutine(function: Callable[..., Any], run: VirtualRun) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse_inside(function, run)
        return run.wait(function(*args, **kwargs))

    return call


def _generator(function: Callable[..., Any], run: VirtualRun) -> Callable[..., Any]:
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
        generator = function(*args, **kwargs)
        while True:  # more than one yield is an error, which pytest reports
            try:
                value = run.call(next, generator)
            except StopIteration:
                return
            yield value

    return generate


def _async_generator(function: Callable[..., Any], run: VirtualRun) -> Callable[..., Any]:
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
        _refuse_inside(function, run)
        generator = _SteppedGenerator(function(*args, **kwargs), run)
        while generator.advance():
            yield generator.value

    return generate


class _SteppedGenerator:
    """An asynchronous generator in a task of its own, so that it may hold timeouts and task groups."""

    def __init__(self, generator: AsyncGenerator[Any, None], run: VirtualRun) -> None:
        self._generator = generator
        self._run = run
        self._turn = run.loop.create_future()
        self._yielded = run.loop.create_future()
        self._task = run.start(self._iterate())
        self.value: Any = None

    async def _iterate(self) -> None:
        async for value in self._generator:
            self._turn = self._run.loop.create_future()
            self.value = value
            self._yielded.set_result(None)
            await self._turn

    def advance(self) -> bool:
        """Run to the next `yield`; return False at the end."""
        self._yielded = self._run.loop.create_future()
        if not self._turn.done():
            self._turn.set_result(None)
        self._run.wait(self._next())
        return self._yielded.done()

    async def _next(self) -> None:
        done = self._task, self._yielded
        await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task


def _refuse_inside(function: Callable[..., Any], run: VirtualRun) -> None:
    if run.loop.is_running():
        pytest.fail(
            f"the async fixture {function.__name__!r} cannot be requested with getfixturevalue while the "
            "loop runs; request it as an argument",
            pytrace=False,
        )

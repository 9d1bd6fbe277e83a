"""Plays sequences on both sides; a differing one is played again, shrunk and played once more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from broker_sim.minimize import Minimizer
from broker_sim_integration.cluster_under_test.faults import UNDONE_BY
from broker_sim_integration.fuzz.difference import differences, unknown
from broker_sim_integration.fuzz.gate import Gate
from broker_sim_integration.fuzz.lookup import Lookup, PlayError
from broker_sim_integration.fuzz.normalise import normalised_play
from broker_sim_integration.fuzz.play import play
from broker_sim_integration.fuzz.sequence import Fault
from broker_sim_integration.fuzz.share_lookup import ShareLookup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable
    from collections.abc import Sequence as Several

    from broker_sim_integration.fuzz.difference import Difference, KnownFuzzDifference
    from broker_sim_integration.fuzz.normalise import Fields
    from broker_sim_integration.fuzz.sequence import Action, Sequence
    from broker_sim_integration.fuzz.side import FuzzedSide

MAX_TRIES: Final = 200
"""Maximum number of candidates played to shrink a sequence."""
MORE_PLAYS: Final = 3
"""Number of times a differing sequence is played again before it counts."""


@dataclass(slots=True)
class Finding:
    """The result of one sequence."""

    sequence: Sequence
    differences: list[Difference] = field(default_factory=list)
    """Differences that match no row of docs/reference/differences.md."""
    by_chance: bool = False
    """Whether it differed once and agreed when it was played again."""
    once_different: list[Difference] = field(default_factory=list)
    """Differences of the first play."""
    trouble: str | None = None
    """The reason why it was not played to its end."""
    shrunk: Sequence | None = None
    """The smallest sequence with the same difference, if it differs."""
    shrunk_differences: list[Difference] = field(default_factory=list)


class Fuzzer:
    """Plays sequences on two sides. For a single event loop; several sequences may be played at once."""

    def __init__(
        self, kafka: FuzzedSide, sim: FuzzedSide, known: Iterable[KnownFuzzDifference] = (), *, prefix: str = "fuzz"
    ) -> None:
        """No two fuzzers of the same clusters may have the same `prefix`."""
        self._sides = kafka, sim
        self._known = list(known)
        self._prefix = prefix
        self._numbers = count(1)
        self.played = 0
        """Number of plays, each on both sides."""

    async def warm_up(self, *, with_share_groups: bool = False) -> None:
        """Wait until both sides have everything that a cluster creates at its first use."""
        for side in self._sides:
            lookup = Lookup(side)
            await lookup.warm_up()
            if with_share_groups:
                await ShareLookup(side, lookup).coordinator()
            await lookup.close()

    async def examine_wave(self, sequences: Several[Sequence], *, shrinks: bool = True) -> list[Finding]:
        """Play sequences with the same faults at once; differing ones are examined alone."""
        gates = [Gate(len(sequences), side.verb) for side in self._sides]
        shared = [replace(side, verb=gate.verb) for side, gate in zip(self._sides, gates, strict=True)]

        async def first(sequence: Sequence) -> list[Difference] | None:
            prefix = self._next_prefix()
            plays = [_leaving(_played(side, sequence, prefix), gate) for side, gate in zip(shared, gates, strict=True)]
            theirs, ours = await asyncio.gather(*plays, return_exceptions=True)
            if isinstance(theirs, BaseException) or isinstance(ours, BaseException):
                return None
            return unknown(differences(sequence, [theirs], [ours]), self._known)

        findings = await asyncio.gather(*map(first, sequences))
        return [
            Finding(sequence) if found_one == [] else await self.examine(sequence, shrinks=shrinks)
            for sequence, found_one in zip(sequences, findings, strict=True)
        ]

    async def examine(self, sequence: Sequence, *, shrinks: bool = True) -> Finding:
        """Play a sequence; if it differs, play it again, and shrink it."""
        finding = Finding(sequence)
        try:
            first = await self._differences(sequence)
            if not first:
                return finding
            finding.differences = await self._differences(sequence, times=MORE_PLAYS)
            finding.by_chance = not finding.differences
            finding.once_different = first
            if finding.differences and shrinks:
                await self._shrink(finding)
        except (PlayError, OSError, TimeoutError) as error:
            finding.trouble = f"{type(error).__name__}: {error}"
        return finding

    async def _shrink(self, finding: Finding) -> None:
        sequence, kind = finding.sequence, finding.differences[0].kind
        # Later actions cannot cause the difference, but may be needed to observe it.
        cut = sequence.actions[: finding.differences[0].index + 1]

        async def fails(actions: Several[Action]) -> bool:
            if not _hit_what_they_can(action for action in actions if isinstance(action, Fault)):
                return False
            candidate = sequence.with_actions(actions)
            for times in (1, 2):
                differences = await self._differences(candidate, times=times)
                if all(one.kind != kind for one in differences):
                    return False
            return True

        shorter = cut if await fails(cut) else sequence.actions
        fewest = await _fewest(shorter, fails)
        finding.shrunk = sequence.with_actions(fewest).without_unused_topics()
        finding.shrunk_differences = await self._differences(finding.shrunk, times=MORE_PLAYS)

    def _next_prefix(self) -> str:
        self.played += 1
        return f"{self._prefix}{next(self._numbers):06}"

    async def _differences(self, sequence: Sequence, times: int = 1) -> list[Difference]:
        """Play a sequence `times` times on both sides; return the unknown differences."""
        answers: tuple[list[list[Fields]], ...] = ([], [])
        for _ in range(times):
            prefix = self._next_prefix()
            plays = (_played(side, sequence, prefix) for side in self._sides)
            for fields, played in zip(answers, await asyncio.gather(*plays), strict=True):
                fields.append(played)
        return unknown(differences(sequence, *answers), self._known)


async def _leaving(play_of_one: Awaitable[list[Fields]], gate: Gate) -> list[Fields]:
    try:
        return await play_of_one
    finally:
        gate.leave()


async def _played(side: FuzzedSide, sequence: Sequence, prefix: str) -> list[Fields]:
    return normalised_play(await play(side, sequence, prefix), sequence, side)


def _hit_what_they_can(faults: Iterable[Fault]) -> bool:
    """Return whether each fault hits a running broker, or undoes the one that its broker has."""
    undo_of: dict[str, str] = {}
    for fault in faults:
        if fault.verb not in UNDONE_BY:
            if undo_of.pop(fault.broker, None) != fault.verb:
                return False
        elif fault.broker in undo_of:
            return False
        else:
            undo_of[fault.broker] = UNDONE_BY[fault.verb]
    return True


async def _fewest(
    actions: Several[Action], fails: Callable[[Several[Action]], Coroutine[None, None, bool]]
) -> Several[Action]:
    """Return a minimal subsequence of the actions that still fails: none of them can be left out."""
    loop = asyncio.get_running_loop()

    def still_fails(candidate: Several[Action]) -> bool:
        return asyncio.run_coroutine_threadsafe(fails(candidate), loop).result()

    def search() -> Several[Action]:
        minimizer = Minimizer(actions, still_fails, max_tries=MAX_TRIES)
        before: Several[Action] = ()
        while minimizer.best != before:
            before = minimizer.best
            minimizer.leave_out(lambda actions: actions, lambda _, rest: tuple(rest))
        return minimizer.best

    return await asyncio.to_thread(search)

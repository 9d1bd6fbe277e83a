"""A run that can be played back: its pictures, time line and requests in one HTML file.

The file is self-contained. Pictures are stored as changes, and an operation that is parked in many of them is stored
once. A file may have a second run beside the first, with the first difference between them. If a file would be too
large, it has fewer pictures and requests, and says so.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from broker_sim.page.changes import changes
from broker_sim.page.files import recorded_html

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

MAX_BYTES: Final = 2_000_000
"""Maximum size of a file."""
MAX_REQUESTS: Final = 20_000
"""Maximum number of requests, and of ended operations, in a file; the last ones are kept."""
FIRST_STEP_MS: Final = 10
"""Shortest time between two pictures; it doubles whenever there are `MAX_PICTURES`."""
MAX_PICTURES: Final = 2_000
_DATA: Final = re.compile(r'<script type="application/gzip" id="recording">([^<]*)</script>')


class RecordedRequest(NamedTuple):
    """A request of a client."""

    at_ms: int
    elapsed_ms: int | None
    """Time to the answer, None without one."""
    client: str
    broker: int
    api: str
    errors: tuple[str, ...]

    def __str__(self) -> str:
        errors = f": {', '.join(self.errors)}" if self.errors else ""
        end = "no answer" if self.elapsed_ms is None else f"answered after {self.elapsed_ms} ms"
        return f"{self.client} sends {self.api} to broker {self.broker}, {end}{errors}"


class RecordedEnd(NamedTuple):
    """The end of a delayed operation. In a run without any of these, ends are derived from the pictures."""

    at_ms: int
    since_ms: int
    """When it was parked."""
    broker: int
    purgatory: str
    id: int
    client: str | None
    keys: tuple[str, ...]
    expired: bool
    by: str
    """The cause of its end, as a text."""


class Band(NamedTuple):
    """A fault, from its start to its end."""

    from_ms: int
    to_ms: int
    text: str
    on: tuple[str, ...]
    """The names of its targets, such as `broker-2` or `worker-1`."""


class RecordedMoment(NamedTuple):
    """A line of the time line."""

    at_ms: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.who}: {self.what}"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as stored in a file: plain values, and its pictures as changes."""

    title: str
    failure: str | None
    """The invariant that did not hold at its end, None if nothing failed."""
    end_ms: float
    frames: Sequence[Mapping[str, Any]] = ()
    moments: Sequence[RecordedMoment] = ()
    requests: Sequence[RecordedRequest] = ()
    ended: Sequence[RecordedEnd] = ()
    bands: Sequence[Band] = ()
    pictures: int = 0
    """Number of pictures before any were left out; the next field likewise."""
    sent: int = 0

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Return the run from the values that `to_json` returns."""
        operations = values["operations"]
        kinds = {"moments": RecordedMoment, "requests": RecordedRequest, "ended": RecordedEnd, "bands": Band}
        lists: dict[str, Any] = {name: [kind(**each) for each in values[name]] for name, kind in kinds.items()}
        frames = [
            {**frame, "set": _parked_as(frame["set"], lambda number: operations[number])} for frame in values["frames"]
        ]
        others = {name: values[name] for name in ("title", "failure", "end_ms", "pictures", "sent")}
        return cls(frames=frames, **lists, **others)

    def to_json(self) -> dict[str, Any]:
        """Return plain values; each operation is stored once, and pictures have its number."""
        numbers: dict[str, int] = {}
        frames = [
            {**frame, "set": _parked_as(frame["set"], lambda one: numbers.setdefault(json.dumps(one), len(numbers)))}
            for frame in self.frames
        ]
        lists = {
            name: [each._asdict() for each in getattr(self, name)] for name in ("moments", "requests", "ended", "bands")
        }
        cut = None
        if len(self.frames) < self.pictures or len(self.requests) < self.sent:
            cut = (
                f"cut to be below {MAX_BYTES // 1_000_000} MB: {len(self.frames)} of {self.pictures} pictures, "
                f"{len(self.requests)} of {self.sent} requests"
            )
        return {
            **{name: getattr(self, name) for name in ("title", "failure", "end_ms", "pictures", "sent")},
            **lists,
            "frames": frames,
            "operations": [json.loads(text) for text in numbers],
            "cut": cut,
        }

    def halved(self) -> RecordedRun:
        """Return the run with every second picture and the later half of its requests and ends."""
        return replace(
            self,
            frames=_halved(self.frames),
            requests=self.requests[(len(self.requests) + 1) // 2 :],
            ended=self.ended[(len(self.ended) + 1) // 2 :],
        )


class Recording:
    """The pictures of one run, and what the page shows beside them."""

    def __init__(self) -> None:
        self.moments: Sequence[RecordedMoment] = ()
        self.requests: Sequence[RecordedRequest] = ()
        self.ended: Sequence[RecordedEnd] = ()
        self.bands: Sequence[Band] = ()
        self._pictures: list[tuple[int, Mapping[str, Any]]] = []
        self._step_ms = FIRST_STEP_MS

    def is_due(self, now_ms: int) -> bool:
        """Whether enough time has passed for the next picture."""
        return not self._pictures or now_ms >= self._pictures[-1][0] + self._step_ms

    def take(self, at_ms: int, parts: Mapping[str, Any]) -> None:
        """Store a picture, unless it equals the last one."""
        if self._pictures and self._pictures[-1][1] == parts:
            return
        if len(self._pictures) >= MAX_PICTURES:
            self._pictures = self._pictures[::2]
            self._step_ms *= 2
        self._pictures.append((at_ms, parts))

    def run(self, title: str, failure: str | None, end_ms: float) -> RecordedRun:
        """Return the run so far; `failure` is the invariant that failed at its end, None without a failure."""
        frames = []
        before: Mapping[str, Any] = {}
        for at_ms, parts in self._pictures:
            frames.append({"at_ms": at_ms, **changes(before, parts)})
            before = parts
        return RecordedRun(
            title, failure, end_ms, frames, self.moments, self.requests, self.ended, self.bands,
            len(frames), len(self.requests),
        )  # fmt: skip


class RecordedPage(NamedTuple):
    """The HTML file of a run, or of two."""

    html: str
    cut: str | None
    """A text on the number of pictures and requests left out; None if it has all."""

    def write(self, file: Path) -> str:
        """Write the file; return one line with its path, its size, and what it leaves out."""
        file.write_text(self.html, "utf-8")
        cut = f", {self.cut}" if self.cut else ""
        return f"the run plays in a browser: {file} ({len(self.html) / 1_000_000:.1f} MB{cut})"


def page_of(run: RecordedRun, beside: RecordedRun | None = None) -> RecordedPage:
    """Return the file of a run, with another one beside it if given."""
    runs = [run] if beside is None else [run, beside]
    difference = None if beside is None else first_difference(run, beside)
    runs = [replace(one, requests=one.requests[-MAX_REQUESTS:], ended=one.ended[-MAX_REQUESTS:]) for one in runs]
    while True:
        data: dict[str, Any] = {"runs": [one.to_json() for one in runs], "difference": difference}
        packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)
        html = recorded_html(run.title, base64.b64encode(packed).decode())
        if len(html) <= MAX_BYTES or all(len(one.frames) <= 1 and not one.requests for one in runs):
            return RecordedPage(html, next((one["cut"] for one in data["runs"] if one["cut"]), None))
        runs = [one.halved() for one in runs]


def data_of(html: str) -> str:
    """Return the runs in a file made by `page_of` as base64 of compressed JSON; empty for any other text."""
    match = _DATA.search(html)
    return match.group(1) if match else ""


def runs_of_html(html: str) -> list[RecordedRun]:
    """Return the runs in a file made by `page_of`. Raises ValueError for any other file."""
    text = data_of(html)
    try:
        data = json.loads(gzip.decompress(base64.b64decode(text))) if text else {}
        return [RecordedRun.from_json(each) for each in data["runs"]]
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ValueError("has no run that this version can read") from error


def first_difference(run: RecordedRun, beside: RecordedRun) -> dict[str, Any] | None:
    """Return the time at which two runs first differ, and what happens then in each: a text, or None after its end.

    Time lines, requests and ends of operations are compared, not pictures. Returns None if all are equal.
    """
    for here, there in zip_longest(_course(run), _course(beside)):
        if here != there:
            at_ms = min(each[0] for each in (here, there) if each is not None)
            return {"at_ms": at_ms, "here": here and here[1], "there": there and there[1]}
    return None


def _course(run: RecordedRun) -> list[tuple[float, str]]:
    """Return the events of a run in order, with times in whole milliseconds."""
    ends = [
        f"{one.purgatory} of {one.client or 'client'} on broker {one.broker} "
        f"{'expires' if one.expired else 'completes'} after {one.at_ms - one.since_ms} ms: {', '.join(one.keys)}"
        for one in run.ended
    ]
    return sorted(
        [
            *((round(one.at_ms), str(one)) for one in run.moments),
            *((round(one.at_ms), str(one)) for one in run.requests),
            *((one.at_ms, text) for one, text in zip(run.ended, ends, strict=True)),
        ]
    )


def _halved(frames: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return every second picture and the last; changes of an omitted picture are merged into the next one."""
    halved = []
    for index, frame in enumerate(frames):
        if index % 2 == 0:
            halved.append(_merged(frames[index - 1], frame) if index else frame)
        elif index == len(frames) - 1:
            halved.append(frame)
    return halved


def _merged(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Return two changes as one."""
    gone = {*first["gone"], *then["gone"]} - then["set"].keys()
    parts = {name: part for name, part in first["set"].items() if name not in then["gone"]}
    return {"at_ms": then["at_ms"], "set": {**parts, **then["set"]}, "gone": sorted(gone)}


def _parked_as(parts: Mapping[str, Any], other: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the parts, with `other` applied to each parked operation."""
    return {
        name: {**part, "parked": [other(one) for one in part["parked"]]} if "parked" in part else part
        for name, part in parts.items()
    }

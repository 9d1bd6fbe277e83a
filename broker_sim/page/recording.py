"""A run that plays: the pictures of its moments with all that is known of it, in one HTML file.

The file needs no other and no network. Pictures are kept as changes, and an operation that is parked in many of them
once. A file that would be too large has fewer pictures and requests, and says so.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.page.changes import changes
from broker_sim.page.files import recorded_html

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES: Final = 2_000_000
"""Maximum size of a file."""
MOST_REQUESTS: Final = 20_000
FIRST_STEP_MS: Final = 10
"""Shortest time between two pictures; it doubles whenever there are `MOST_PICTURES`."""
MOST_PICTURES: Final = 2_000


class RecordedRequest(NamedTuple):
    """A request of a client."""

    at_ms: int
    elapsed_ms: int | None
    """Time to the answer, None without one."""
    client: str
    broker: int
    api: str
    errors: tuple[str, ...]


class Band(NamedTuple):
    """A fault, from when it began to when it ended."""

    from_ms: int
    to_ms: int
    text: str
    on: tuple[str, ...]
    """The names of those that it concerns, such as `broker-2` or `worker-1`."""


class RecordedMoment(NamedTuple):
    """A line of the time line."""

    at_ms: float
    who: str
    what: str


class Recording:
    """The pictures of one run, and what the page shows beside them."""

    def __init__(self) -> None:
        self.moments: Sequence[RecordedMoment] = ()
        self.requests: Sequence[RecordedRequest] = ()
        self.bands: Sequence[Band] = ()
        self._pictures: list[tuple[int, Mapping[str, Any]]] = []
        self._step_ms = FIRST_STEP_MS

    def is_due(self, now_ms: int) -> bool:
        """Whether enough time has passed for the next picture."""
        return not self._pictures or now_ms >= self._pictures[-1][0] + self._step_ms

    def take(self, at_ms: int, parts: Mapping[str, Any]) -> None:
        """Keep a picture, if it is not the same as the last one."""
        if self._pictures and self._pictures[-1][1] == parts:
            return
        if len(self._pictures) >= MOST_PICTURES:
            self._pictures = self._pictures[::2]
            self._step_ms *= 2
        self._pictures.append((at_ms, parts))

    def html(self, title: str, failure: str | None, end_ms: float) -> str:
        """Return the file; `failure` says what did not hold at its end, None if nothing failed."""
        pictures, requests = self._pictures, list(self.requests)[-MOST_REQUESTS:]
        while True:
            data = self._data(pictures, requests) | {"title": title, "failure": failure, "end_ms": end_ms}
            if len(requests) < len(self.requests) or len(pictures) < len(self._pictures):
                data["cut"] = (
                    f"cut to be below {MOST_BYTES // 1_000_000} MB: {len(pictures)} of {len(self._pictures)} pictures, "
                    f"{len(requests)} of {len(self.requests)} requests"
                )
            packed = gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)
            html = recorded_html(title, base64.b64encode(packed).decode())
            if len(html) <= MOST_BYTES or (len(pictures) <= 1 and not requests):
                return html
            pictures = [*pictures[:-1:2], pictures[-1]] if len(pictures) > 1 else pictures
            requests = requests[len(requests) // 2 + 1 :]

    def _data(
        self, pictures: Sequence[tuple[int, Mapping[str, Any]]], requests: Sequence[RecordedRequest]
    ) -> dict[str, Any]:
        operations: dict[str, int] = {}
        frames = []
        before: Mapping[str, Any] = {}
        for at_ms, parts in pictures:
            change = changes(before, parts)
            before = parts
            frames.append({"at_ms": at_ms, "gone": change["gone"], "set": _interned(change["set"], operations)})
        return {
            "frames": frames,
            "operations": [json.loads(text) for text in operations],
            "moments": [each._asdict() for each in self.moments],
            "requests": [each._asdict() for each in requests],
            "bands": [each._asdict() for each in self.bands],
        }


def _interned(parts: Mapping[str, Any], operations: dict[str, int]) -> dict[str, Any]:
    """Return the parts with the number of each parked operation in its place."""
    interned = {}
    for name, part in parts.items():
        if "parked" in part:
            texts = [json.dumps(each) for each in part["parked"]]
            interned[name] = {**part, "parked": [operations.setdefault(text, len(operations)) for text in texts]}
        else:
            interned[name] = part
    return interned

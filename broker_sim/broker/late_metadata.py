"""Delays new metadata on its way into a broker, in two steps; Kafka's brokers apply it at their own pace.

    the controller commits     requests are checked against       partitions have their
    it and responds            the new image                      roles of the new image
    ───────┬───────────────────────────┬──────────────────────────────────┬──────────▶
           │ UNKNOWN_TOPIC_ID, or      │ NOT_LEADER_OR_FOLLOWER           │ served
           │ UNKNOWN_TOPIC_OR_PARTITION│                                  │

Both steps take no time unless a fault delays them: then each broker draws the duration of each step.
Mirrors the effects of `MetadataLoader` and `BrokerMetadataPublisher.onMetadataUpdate` that clients can observe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.metadata import MetadataImage
    from broker_sim.runtime.process import Process


class MetadataDelay:
    """The fault that delays the metadata of all brokers."""

    __slots__ = ("_rng", "max_ms")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.max_ms = 0
        """Maximum duration of each step in ms; 0 if the fault is off."""

    def draw_ms(self) -> int:
        """Return the duration of the next step in ms."""
        return self._rng.randint(0, self.max_ms) if self.max_ms else 0


class LateMetadata:
    """The newest image on its way into one broker. Thread rule: the broker's loop."""

    __slots__ = ("_delay", "_is_busy", "_newest", "_process", "_set_image", "applied_version")

    def __init__(
        self, process: Process, delay: MetadataDelay, set_image: Callable[[MetadataImage], Callable[[], object]]
    ) -> None:
        """`set_image(image)` performs the first step, and returns the function for the second step."""
        self._process = process
        self._delay = delay
        self._set_image = set_image
        self._newest: MetadataImage | None = None
        self._is_busy = False
        self.applied_version = -1
        """Version of the last image whose second step is done; -1 before the first."""

    def take(self, image: MetadataImage) -> None:
        """Accept an image from the controller; an image that is already superseded is skipped."""
        self._newest = image
        if not self._is_busy:
            self._is_busy = True
            self._after_delay(self._begin_newest)

    def _after_delay(self, step: Callable[[], object]) -> None:
        delay_ms = self._delay.draw_ms()
        if delay_ms:
            self._process.call_later(delay_ms, step)
        else:
            step()

    def _begin_newest(self) -> None:
        image, self._newest = self._newest, None
        assert image is not None
        if image.version <= self.applied_version:
            self._is_busy = False
            return
        apply = self._set_image(image)

        def finish() -> None:
            self.applied_version = image.version
            self._is_busy = False
            apply()
            if self._newest is not None and not self._is_busy:
                self.take(self._newest)

        self._after_delay(finish)

"""The current metadata, and the one way in which it changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from broker_sim_purgatory import Clock

from broker_sim.controller.change_events import log_changes
from broker_sim.metadata import MetadataDelta, MetadataImage


class MetadataChanges:
    """Owns the current `image`. A change makes one new image, which is published once."""

    def __init__(self, clock: Clock, image: MetadataImage, publish: Callable[[MetadataImage], None]) -> None:
        self._clock = clock
        self._publish = publish
        self.image = image

    @contextmanager
    def _change(self, validate_only: bool = False) -> Iterator[MetadataDelta]:
        """Give a delta, and commit it at the end; not if something was raised, or to validate only."""
        delta = MetadataDelta(self.image)
        yield delta
        if not (validate_only or delta.is_empty):
            image = delta.apply()
            log_changes(self.image, image, self._clock)
            self.image = image
            self._publish(image)

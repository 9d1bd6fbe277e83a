"""The share fetches of a broker that wait for records; a part of `SharePartitionManager`.

Each is watched under its share partitions (records become available again) and under their partitions for all
groups (the high watermark moves).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.replica.purgatories import DelayedShareFetchGroupKey, DelayedShareFetchPartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim_purgatory import DelayedOperationPurgatory

    from broker_sim.runtime.delayed_request import DelayedRequest
    from broker_sim.share.share_state import SharePartitionKey


class WaitingShareFetches:
    """The purgatory of share fetches. Thread rule: the broker's loop."""

    def __init__(
        self,
        purgatory: DelayedOperationPurgatory[DelayedRequest],
        after_serving: Callable[[Callable[[], object]], object],
    ) -> None:
        """`after_serving(action)` runs an action after the current handler has returned."""
        self.round = 0
        """Number of the current round, see `_try_announced`; 0 outside of rounds."""
        self._rounds = 0
        self._purgatory = purgatory
        self._after_serving = after_serving
        self._announced: dict[object, None] = {}
        """Watched keys to check after the current handler has returned."""

    def add(self, fetch: DelayedRequest, keys: Iterable[SharePartitionKey]) -> None:
        """Try to complete the fetch, otherwise watch it under these share partitions."""
        watched = [watched_key for key in keys for watched_key in _watched_keys(key)]
        self._purgatory.try_complete_else_watch(fetch, watched)

    def add_refused(self, delay_ms: int, on_timeout: Callable[[], object]) -> None:
        """Call `on_timeout()` after the delay, to answer a fetch that gets no session."""
        self._purgatory.timer.call_later(delay_ms, on_timeout)

    def complete(self, key: SharePartitionKey) -> int:
        """Try the fetches of a share partition now; return the number of completed ones."""
        return self._purgatory.check_and_complete(DelayedShareFetchGroupKey(*key))

    def announce(self, key: SharePartitionKey) -> None:
        """Try the fetches of a share partition after the current handler has returned."""
        self._announce([DelayedShareFetchGroupKey(*key)])

    def announce_to_all_groups(self, key: SharePartitionKey) -> None:
        """Like `announce`, but also try the other groups' fetches of the same partition."""
        self._announce(_watched_keys(key))

    def _announce(self, watched_keys: Iterable[object]) -> None:
        if not self._announced:
            self._after_serving(self._try_announced)
        self._announced.update(dict.fromkeys(watched_keys))

    def _try_announced(self) -> None:
        """Try each fetch once, because a try checks all of its partitions.

        A fetch that completes announces its partitions for the next round, so another try in the same round
        would have the same outcome.
        """
        announced, self._announced = self._announced, {}
        self._rounds += 1
        self.round = self._rounds
        try:
            for watched_key in announced:
                self._purgatory.check_and_complete(watched_key)
        finally:
            self.round = 0


def _watched_keys(key: SharePartitionKey) -> tuple[object, ...]:
    return DelayedShareFetchGroupKey(*key), DelayedShareFetchPartitionKey(key.topic_id, key.partition)

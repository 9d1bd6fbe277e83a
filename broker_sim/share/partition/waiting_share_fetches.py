"""The share fetches of a broker that wait for records, and what wakes them; a part of `SharePartitionManager`.

Each is watched under its share partitions (their records may be available again) and under their partitions for all
groups (the high watermark may move).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory import TimerTask

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
        """`after_serving(action)` runs an action when the running handler has returned."""
        self.round = 0
        """Number of the tries that belong together, see `_try_announced`; 0 for a try by itself."""
        self._rounds = 0
        self._purgatory = purgatory
        self._after_serving = after_serving
        self._announced: dict[object, None] = {}
        """Watched keys under which fetches are tried when the running handler has returned."""

    def add(self, fetch: DelayedRequest, keys: Iterable[SharePartitionKey]) -> None:
        """Try the fetch, and let it wait for these share partitions if it is not complete."""
        watched = [watched_key for key in keys for watched_key in _watched_keys(key)]
        self._purgatory.try_complete_else_watch(fetch, watched)

    def add_refused(self, delay_ms: int, on_timeout: Callable[[], object]) -> None:
        """Call `on_timeout()` after the delay, for a fetch without room for its session."""
        self._purgatory.timer.add(_RefusedShareFetch(delay_ms, on_timeout))

    def complete(self, key: SharePartitionKey) -> int:
        """Try the fetches of a share partition now; return the number of those completed."""
        return self._purgatory.check_and_complete(DelayedShareFetchGroupKey(*key))

    def announce(self, key: SharePartitionKey) -> None:
        """Try the fetches of a share partition when the running handler has returned."""
        self._announce([DelayedShareFetchGroupKey(*key)])

    def announce_to_all_groups(self, key: SharePartitionKey) -> None:
        """Do the same, and then for the fetches that other groups have of its partition."""
        self._announce(_watched_keys(key))

    def _announce(self, watched_keys: Iterable[object]) -> None:
        if not self._announced:
            self._after_serving(self._try_announced)
        self._announced.update(dict.fromkeys(watched_keys))

    def _try_announced(self) -> None:
        """Try each fetch once: a try looks at all of its partitions.

        A fetch that completes announces the records that it takes or gives back, so another try in the same round
        would see the same.
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


class _RefusedShareFetch(TimerTask):
    """Answers a share fetch without a session when its time is over."""

    __slots__ = ("_on_timeout",)

    def __init__(self, delay_ms: int, on_timeout: Callable[[], object]) -> None:
        super().__init__(delay_ms)
        self._on_timeout = on_timeout

    def run(self) -> None:
        """Answer the fetch."""
        self._on_timeout()

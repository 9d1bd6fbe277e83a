"""Batching with a deadline: a batch leaves when it is full, or 50 ms after its first item.

Run it with `python examples/batching.py`: it ends at once, because its time is virtual.
"""

from collections.abc import Callable

from broker_sim_purgatory import Timer, TimerTask, VirtualTimer


class Linger(TimerTask):
    """Flushes a batcher at its deadline."""

    __slots__ = ("_flush",)

    def __init__(self, delay_ms: int, flush: Callable[[], None]) -> None:
        super().__init__(delay_ms)
        self._flush = flush

    def run(self) -> None:
        """Send the batch, even if it is not full."""
        self._flush()


class Batcher:
    """Collects items into batches. Single-threaded: use it on the thread that runs the timer's tasks.

    Nearly every deadline is cancelled because the batch is full first: the case for which a timing wheel is made.
    """

    def __init__(self, timer: Timer, send: Callable[[list[str]], None], *, size: int, linger_ms: int) -> None:
        self._timer = timer
        self._send = send
        self._size = size
        self._items: list[str] = []
        self._linger = Linger(linger_ms, self.flush)

    def add(self, item: str) -> None:
        """Add an item; the first one of a batch sets the deadline, the last one sends the batch."""
        self._items.append(item)
        if len(self._items) == self._size:
            self.flush()
        elif len(self._items) == 1:
            self._timer.add(self._linger)

    def flush(self) -> None:
        """Send the current items."""
        self._linger.cancel()
        items, self._items = self._items, []
        self._send(items)


def main() -> None:
    """Send nine items, of which the last two have to wait for the deadline."""
    timer = VirtualTimer()
    batcher = Batcher(
        timer, lambda items: print(f"{timer.clock.now_ms():3} ms: {' '.join(items)}"), size=7, linger_ms=50
    )
    for number in range(9):
        timer.advance(5)
        batcher.add(f"item-{number}")
    timer.run_until_idle()


if __name__ == "__main__":
    main()

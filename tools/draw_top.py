"""Draw `broker-sim top`: `python -m tools.draw_top` writes docs/operate/top.svg.

The picture shows a cluster in virtual time whose followers are paused while producers and consumers wait.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker_sim import VirtualCluster
from broker_sim.cli.top_view import render
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from tools.terminal_picture import picture

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET: Final = Path(__file__).parents[1] / "docs" / "operate" / "top.svg"
WIDTH: Final = 126
SEED: Final = 5
TOPICS: Final = ("orders:2:3", "payments:1:3")
LEADERS: Final = {("orders", 0): 1, ("orders", 1): 1, ("payments", 0): 2}
PAUSED: Final = 3
FIRST: Final = 3
"""Number of records produced before the pause."""
INTERVAL_MS: Final = 1_000
STEP_MS: Final = 210
WAITS_MS: Final = (30_000, 1_400, 9_000, 2_600, 4_000, 30_000, 3_100, 2_900)


def draw() -> str:
    """Return the picture."""
    before, now = _looks()
    return picture(render(now, before, INTERVAL_MS / 1_000, width=WIDTH), "broker-sim top", "top", WIDTH)


def _looks() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the states at two moments a second apart, with waiting acks=all requests and long polls."""
    with VirtualCluster(seed=SEED, topics=TOPICS) as cluster:
        for (topic, partition), leader in LEADERS.items():
            cluster.transfer_leadership(topic, partition, leader)

        def ask(wait_ms: int) -> None:
            # A connection has one request in flight, so each of these needs its own.
            for partition, leader in LEADERS.items():
                produce = produce_request(partition, timeout_ms=wait_ms)
                cluster.client().send(leader, produce, PRODUCE_VERSION)
                poll = fetch_request(partition, offset=FIRST, max_wait_ms=wait_ms)
                cluster.client().send(leader, poll, FETCH_VERSION)

        for _ in range(FIRST):
            ask(min(WAITS_MS))
        cluster.advance(INTERVAL_MS)
        cluster.pause(PAUSED)
        for wait_ms in WAITS_MS:
            ask(wait_ms)
            cluster.advance(STEP_MS)
        before = cluster.purgatory().to_json()
        cluster.advance(INTERVAL_MS)
        return before, cluster.purgatory().to_json()


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")

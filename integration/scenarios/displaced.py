"""A topic whose leader can be moved at a chosen moment, by an election of its preferred leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from integration.clients.topics import Topic
    from integration.stage.stage import Stage

__all__ = ["displaced_topic"]


def displaced_topic(stage: Stage) -> Topic:
    """Return a topic led by the anchor and preferred by ``second``, its ISR complete.

    ``second`` is frozen until it is fenced, and goes on again; that takes five seconds on a cluster
    with quick fencing.
    """
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    stage.pause(stage.second)
    stage.until_leader(topic, stage.anchor)
    stage.resume(stage.second)
    stage.until_brokers(*stage.brokers)
    stage.until_isr(topic, *stage.brokers)
    stage.settle()
    return topic

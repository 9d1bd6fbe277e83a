"""Fetches in one session (KIP-227), with epochs and partitions that the scenario chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from broker_sim.protocol import messages
from broker_sim_integration.clients.broker_client import FETCH_WITH_TOPIC_IDS, fetch_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient, Position
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.clients.topics import Topic

__all__ = ["FINAL_EPOCH", "NEW_SESSION", "fetch_in_session", "start_fetch_in_session"]

NEW_SESSION, FINAL_EPOCH = 0, -1
RACK_VERSION = 11


class SessionOptions(TypedDict, total=False):
    """The options of `start_fetch_in_session`."""

    session_id: int
    epoch: int
    forgotten: Sequence[tuple[Topic, int]]
    max_wait_ms: int
    max_bytes: int
    isolation_level: int
    rack_id: str
    version: int


def start_fetch_in_session(
    client: BrokerClient,
    *positions: Position,
    session_id: int = 0,
    epoch: int = NEW_SESSION,
    forgotten: Sequence[tuple[Topic, int]] = (),
    max_wait_ms: int = 0,
    max_bytes: int = 50 << 20,
    isolation_level: int = 0,
    rack_id: str = "",
    version: int = 17,
) -> Pending[messages.FetchResponse]:
    """Send one fetch in a session, with the changed positions and the forgotten (topic, partition) pairs."""
    request = fetch_request(positions, version=version)
    request.session_id, request.session_epoch = session_id, epoch
    request.max_wait_ms, request.max_bytes = max_wait_ms, max_bytes
    request.isolation_level = isolation_level
    if version >= RACK_VERSION:
        request.rack_id = rack_id
    for topic, partition in forgotten:
        entry = messages.FetchRequest.ForgottenTopic(partitions=[partition])
        by_id = version >= FETCH_WITH_TOPIC_IDS
        topic.named_in(entry, by_id=by_id, name_field="topic")
        request.forgotten_topics_data.append(entry)
    return client.send(request, version, messages.FetchResponse)


def fetch_in_session(
    client: BrokerClient, *positions: Position, **options: Unpack[SessionOptions]
) -> Reply[messages.FetchResponse]:
    """Send one fetch in a session and wait for the response."""
    return start_fetch_in_session(client, *positions, **options).result()

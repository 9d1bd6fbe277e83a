"""The brokers in the metadata of one broker, requested on a connection of its own.

A client library may send the request to any broker; here it matters which broker responds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.network.one_request import ask
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA_VERSION = 12


def listed_brokers(address: str, *, timeout_s: float) -> Mapping[int, str]:
    """Return the address of each unfenced broker in the metadata of the broker at `address`, by id.

    Raise `OSError` if it does not respond within `timeout_s`.
    """
    answer = ask(
        address,
        messages.MetadataRequest(topics=[], allow_auto_topic_creation=False),
        METADATA_VERSION,
        messages.MetadataResponse,
        timeout_s=timeout_s,
        client_id="broker-sim-reference",
    )
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}

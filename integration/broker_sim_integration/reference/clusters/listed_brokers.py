"""Which brokers one broker knows, asked on a separate connection.

A client library may ask any broker; here it matters which broker answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.network.one_request import ask
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping

METADATA_VERSION = 12


def listed_brokers(address: str, *, timeout_s: float) -> Mapping[int, str]:
    """Return number and address of every broker that is not fenced, as the one asked knows it.

    Raises `OSError` when it does not answer within `timeout_s`.
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

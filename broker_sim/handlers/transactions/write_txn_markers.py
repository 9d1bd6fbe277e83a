"""WriteTxnMarkers (key 27), versions 1-2; mirrors `KafkaApis.handleWriteTxnMarkersRequest`.

Behaviour:
* a transaction coordinator, or a tool that aborts a hanging transaction, ends it in partitions that this
  broker leads
* answered once the in-sync replicas have the markers

Version notes: 1 is flexible, 2 has the transaction version, by which the marker's epoch is checked
(KIP-1228).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages


def handle_write_txn_markers(
    request: messages.WriteTxnMarkersRequest,
    context: RequestContext,
    respond: Callable[[messages.WriteTxnMarkersResponse], None],
) -> None:
    """Append the markers and answer with the result of each partition."""
    context.broker.write_txn_markers(request, respond)

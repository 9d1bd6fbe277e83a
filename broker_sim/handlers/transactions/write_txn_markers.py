"""WriteTxnMarkers (key 27), versions 1-2; mirrors `KafkaApis.handleWriteTxnMarkersRequest`.

Behaviour:
* a transaction's coordinator, or who aborts a hanging transaction, ends it in the partitions led here
* a partition is answered when the in-sync replicas have its marker

Version notes: 1 is flexible, 2 tells the transaction version, by which the marker's epoch is checked
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

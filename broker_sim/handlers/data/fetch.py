"""Fetch (key 1), versions 4-18; mirrors `KafkaApis.handleFetchRequest`.

Behaviour:
* answers at once with an error or with enough data, otherwise when data arrives or at the timeout
* a client above its quota gets an empty response, and one fetch reads no more than the whole window of
  the quota allows
* a partition that does not exist gets an error, but does not end the wait for the others
* `fetch.max.bytes` limits what the request asks for
* an incremental fetch (KIP-227) reads all partitions of its session and returns those that changed; those
  with records are read last the next time

A fetch goes through three modules, one after the other: this one, `fetch_request` (the fetcher, and the check
of its partitions) and, when the records are there, `fetch_response`.

Version notes: 7 brings fetch sessions, 9 leader epochs, 11 racks and fetching from followers
(KIP-392), 12 the last fetched epoch (KIP-595), 13 topic ids (KIP-516), 15 the replica state,
16 the current leader (KIP-951), 18 a follower's high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.handlers.data.fetch_request import Fetcher, partitions_of_fetch
from broker_sim.handlers.data.fetch_response import FetchAnswer, failed_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages


def handle_fetch(
    request: messages.FetchRequest, context: RequestContext, respond: Callable[[messages.FetchResponse], None]
) -> None:
    """Read the partitions of the request or of its session, now or when there is enough data."""
    fetcher = Fetcher(request, context)
    try:
        partitions = partitions_of_fetch(request, fetcher)
        # An injected error ends the wait, as an error of the log does.
        params = fetcher.params(request, waits=not partitions.has_injected_error) if partitions.readable else None
    except ApiError as error:
        respond(failed_response(request, context.api_version, error.error_code))
        return
    answer = FetchAnswer(request, fetcher, partitions, respond)
    if params is None:
        answer.send(())
    else:
        context.broker.replica_manager.fetch_messages(params, partitions.infos, answer.send)

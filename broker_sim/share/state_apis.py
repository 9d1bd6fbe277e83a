"""The five requests that share coordinators serve, and conversions of their messages.

All have the same shape: a group, topics by id, their partitions, and an outcome for each partition. A partition's
fields have the same names as the values in `share_state.py`. Mirrors the `toResponse...` helpers of the responses, and
`RequestCoalescerHelper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages
from broker_sim.share.share_state import (
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateOutcome,
    StateSummary,
    WrittenState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class InitialState(NamedTuple):
    """The arguments of InitializeShareGroupState for a share partition."""

    state_epoch: int
    start_offset: int


class ReaderEpoch(NamedTuple):
    """The argument of ReadShareGroupState and ReadShareGroupStateSummary for a share partition."""

    leader_epoch: int


class NoArguments(NamedTuple):
    """The empty arguments of DeleteShareGroupState for a share partition."""


@dataclass(frozen=True, slots=True, eq=False)
class StateApi:
    """One of the requests, with its message classes. Compared by identity."""

    name: str
    """Name in error messages of the share coordinator."""
    event: str
    """Name of the write event in Kafka's runtime, used in error messages."""
    request: Any
    request_topic: Any
    response: Any
    response_topic: Any
    arguments: Any
    """Class of the arguments for a share partition."""
    outcome: Any
    """Class of the outcome for a share partition."""

    @property
    def verb(self) -> str:
        """Name in error messages of the persister."""
        return self.name.replace(" share group", "")

    def failed(self, error_code: ErrorCode, text: str | None) -> Any:
        """Return a failed outcome."""
        return self.outcome(error_code, text)

    def request_of(self, group_id: str, arguments: Iterable[tuple[SharePartitionKey, Any]]) -> Any:
        """Return the request with the arguments of a group's share partitions."""
        topics = by_topic(
            (key.topic_id, _to_message(self.request, "PartitionData", key.partition, each)) for key, each in arguments
        )
        return self.request(group_id, [self.request_topic(*topic) for topic in topics.items()])

    def arguments_of(self, request: Any) -> list[tuple[SharePartitionKey, Any]]:
        """Return the share partitions of a request in its order, each with its arguments."""
        return [
            (
                SharePartitionKey(request.group_id, topic.topic_id, partition.partition),
                _from_message(self.arguments, partition),
            )
            for topic in request.topics
            for partition in topic.partitions
        ]

    def response_of(self, outcomes: Mapping[SharePartitionKey, Any]) -> Any:
        """Return the response with these outcomes, which must be in request order.

        As in Kafka, topics and partitions are in hash table order.
        """
        topics: HashTable[bytes, HashTable[int, Any]] = HashTable(uuid_hash)
        for key, outcome in outcomes.items():
            if key.topic_id not in topics:
                topics.add(key.topic_id, HashTable(integer_hash))
            result = _to_message(self.response, "PartitionResult", key.partition, outcome)
            topics[key.topic_id].put(key.partition, result)
        return self.response(
            [self.response_topic(topic_id, topics[topic_id].values_in_order()) for topic_id in topics.in_order()]
        )

    def failed_response(self, request: Any, error_code: ErrorCode, text: str | None) -> Any:
        """Return a response in which all partitions of the request have failed, including duplicates."""
        failed = self.failed(error_code, text)
        return self.response(
            [
                self.response_topic(
                    topic.topic_id,
                    [
                        _to_message(self.response, "PartitionResult", partition.partition, failed)
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def outcomes_of(self, group_id: str, response: Any) -> dict[SharePartitionKey, Any]:
        """Return the outcomes in a response, by share partition."""
        return {
            SharePartitionKey(group_id, topic.topic_id, partition.partition): _from_message(self.outcome, partition)
            for topic in response.results
            for partition in topic.partitions
        }


def _to_message(of: Any, name: str, partition: int, values: Any) -> Any:
    fields = values._asdict()
    if fields.get("error_code"):
        # As in Kafka, a failed partition has the defaults of the message, not those of the state.
        code, text = fields["error_code"], fields["error_message"]
        return getattr(of, name)(partition=partition, error_code=code, error_message=text)
    if "state_batches" in fields:
        fields["state_batches"] = [of.StateBatch(*batch) for batch in fields["state_batches"]]
    return getattr(of, name)(partition=partition, **fields)


def _from_message(values: Any, message: Any) -> Any:
    fields = {name: getattr(message, name) for name in values._fields}
    if "error_code" in fields:
        fields["error_code"] = ErrorCode(fields["error_code"])
        if fields["error_code"]:
            return values(fields["error_code"], fields["error_message"])
    if "state_batches" in fields:
        fields["state_batches"] = tuple(
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in fields["state_batches"]
        )
    return values(**fields)


INITIALIZE: Final = StateApi(
    "initialize share group state",
    "initialize-share-group-state",
    messages.InitializeShareGroupStateRequest,
    messages.InitializeShareGroupStateRequest.InitializeStateData,
    messages.InitializeShareGroupStateResponse,
    messages.InitializeShareGroupStateResponse.InitializeStateResult,
    InitialState,
    StateOutcome,
)
READ: Final = StateApi(
    "read share group state",
    "read-update-leader-epoch-state",
    messages.ReadShareGroupStateRequest,
    messages.ReadShareGroupStateRequest.ReadStateData,
    messages.ReadShareGroupStateResponse,
    messages.ReadShareGroupStateResponse.ReadStateResult,
    ReaderEpoch,
    ReadState,
)
WRITE: Final = StateApi(
    "write share group state",
    "write-share-group-state",
    messages.WriteShareGroupStateRequest,
    messages.WriteShareGroupStateRequest.WriteStateData,
    messages.WriteShareGroupStateResponse,
    messages.WriteShareGroupStateResponse.WriteStateResult,
    WrittenState,
    StateOutcome,
)
DELETE: Final = StateApi(
    "delete share group state",
    "delete-share-group-state",
    messages.DeleteShareGroupStateRequest,
    messages.DeleteShareGroupStateRequest.DeleteStateData,
    messages.DeleteShareGroupStateResponse,
    messages.DeleteShareGroupStateResponse.DeleteStateResult,
    NoArguments,
    StateOutcome,
)
SUMMARY: Final = StateApi(
    "read share group state summary",
    "read-share-group-state-summary",
    messages.ReadShareGroupStateSummaryRequest,
    messages.ReadShareGroupStateSummaryRequest.ReadStateSummaryData,
    messages.ReadShareGroupStateSummaryResponse,
    messages.ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    ReaderEpoch,
    StateSummary,
)
STATE_APIS: Final = (INITIALIZE, READ, WRITE, DELETE, SUMMARY)

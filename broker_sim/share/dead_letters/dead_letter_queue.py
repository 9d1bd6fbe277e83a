"""Writes dead letters of share groups to their topics; mirrors `ShareGroupDLQStateManager` (KIP-1191).

A share partition enqueues ranges of records that its group cannot process (`DeadLetters`); each record becomes one
record of the group's dead-letter topic, with headers that name its source. Its partition is the source partition
modulo the partition count. Letters for one broker share a request, one batch per partition, and a broker has one
request in flight. Outcomes:

A. The group has no dead-letter topic, or may not use it: abandoned. This is checked before each attempt.
B. The topic does not exist, or its partition has no leader: a random broker is asked to create it. If the topic
   already exists, or no response arrives, start again at A, up to `MAX_ATTEMPTS` times.
C. Written: done. Letters that did not fit into the batch go into the next request.
D. The leader has moved, or no response arrives: start again at A, up to `MAX_ATTEMPTS` times.
E. Any other error, such as NOT_ENOUGH_REPLICAS or MESSAGE_TOO_LARGE: abandoned.

The backoff between attempts starts at two seconds and doubles, with a jitter of 20 percent. In the end the records are
archived in any case: abandoned letters only show up in the broker's log and metrics.

Deliberate difference: for a batch with several states Kafka counts one request per record, here one per range of
records with the same state.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES
from broker_sim.protocol.records import Record, build_batch, record_size
from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.inter_broker import MAX_ATTEMPTS, InterBrokerQueue, backoff_ms
from broker_sim.share.dead_letters.originals import Originals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.runtime.inter_broker import InterBrokerSender
    from broker_sim.share.dead_letters.originals import ReadLog
    from broker_sim.share.settings import ShareGroupSettings

    Append = Mapping[TopicIdPartition, bytes]
    Appended = Mapping[TopicIdPartition, ErrorCode]

log = get_logger(__name__)

REJECTED: Final = "Offset rejected by client."
DELIVERED_TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."

_CREATED_ALREADY: Final = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED})
_MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NETWORK_EXCEPTION})


class DeadLetters(NamedTuple):
    """A range of records that a group cannot process, for the same reason; mirrors `ShareGroupDLQRecordParameter`."""

    group_id: str
    source: TopicIdPartition
    first_offset: int
    last_offset: int
    delivery_count: int
    cause: str

    def headers(self, offset: int) -> tuple[tuple[str, bytes], ...]:
        """Return the headers of one record's dead letter."""
        return (
            ("__dlq.errors.topic", (self.source.topic or "").encode()),
            ("__dlq.errors.partition", b"%d" % self.source.partition),
            ("__dlq.errors.offset", b"%d" % offset),
            ("__dlq.errors.group", self.group_id.encode()),
            ("__dlq.errors.delivery.count", b"%d" % self.delivery_count),
            ("__dlq.errors.message", self.cause.encode()),
        )


class _Pending:
    """Letters that are not completely written; mirrors `ProduceRequestHandler`."""

    __slots__ = (
        "creations",
        "destination",
        "last_included_offset",
        "leader",
        "letters",
        "next_offset",
        "on_done",
        "originals",
        "requests",
    )

    def __init__(self, letters: DeadLetters, on_done: Callable[[], object]) -> None:
        self.letters = letters
        self.on_done = on_done
        self.next_offset = letters.first_offset
        self.last_included_offset = letters.first_offset - 1
        """Last offset in the request in flight."""
        self.originals: Originals | None = None
        """The records that are copied in this round; None for letters with headers only."""
        self.destination = letters.source
        """The partition of the dead-letter topic, once it is looked up."""
        self.leader = -1
        self.creations = 0
        """Number of attempts to create the topic."""
        self.requests = 0
        """Number of failed requests since the last success."""


class NoOpDeadLetterQueue:
    """Writes nothing: the records are archived at once; mirrors `NoOpShareGroupDLQManager`."""

    def __init__(self) -> None:
        self.records: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.failed_requests: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()

    def enqueue(self, letters: DeadLetters, on_done: Callable[[], object]) -> None:
        """Call `on_done()`."""
        self.given_up[letters.group_id] += letters.last_offset - letters.first_offset + 1
        on_done()


class DeadLetterQueue:
    """Writes the dead letters of one broker's share partitions. Thread rule: the broker's loop."""

    def __init__(
        self,
        broker: BrokerContext,
        settings: ShareGroupSettings,
        read_log: ReadLog,
        appends: InterBrokerSender[Append, Appended],
        creations: InterBrokerSender[str, ErrorCode],
    ) -> None:
        """Use `appends` to send batches to partition leaders, `creations` to send topic names to any broker."""
        self.records: Counter[str] = Counter()
        """Number of written letters by group; Kafka's `DeadLetterQueueRecordCount`."""
        self.requests: Counter[str] = Counter()
        """Number of requests by group; Kafka's `DeadLetterQueueTotalProduceRequestsPerSec`."""
        self.failed_requests: Counter[str] = Counter()
        """Number of requests whose letters were abandoned; Kafka's `DeadLetterQueueFailedProduceRequestsPerSec`."""
        self.given_up: Counter[str] = Counter()
        """Number of letters that were abandoned, by group; Kafka has no metric of them."""
        self._broker = broker
        self._settings = settings
        self._read_log = read_log
        self._creations = creations
        self._queue = InterBrokerQueue(
            appends,
            deque[_Pending],
            self._next_request,
            broker.process.after_serving,
            before_sending=self._look_up_new,
        )
        self._new: deque[_Pending] = deque()
        """Letters whose leader is not yet looked up."""
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    def enqueue(self, letters: DeadLetters, on_done: Callable[[], object]) -> None:
        """Write the letters; call `on_done()` once they are written or abandoned, possibly before this returns."""
        pending = _Pending(letters, on_done)
        if self._settings.copies_dead_letters(letters.group_id) and self._refusal(letters.group_id) is None:
            self._read_originals(pending)
        self._enqueue(pending)

    def _enqueue(self, pending: _Pending) -> None:
        """Queue the letters, or abandon them in case A."""
        refusal = self._refusal(pending.letters.group_id)
        if refusal is not None:
            self._give_up(pending, refusal)
            return
        self._new.append(pending)
        self._queue.send_soon()

    def _refusal(self, group_id: str) -> str | None:
        """Return the error if the group may not use its dead-letter topic, or None; mirrors `validateDlqTopic`."""
        name = self._settings.dead_letter_topic(group_id)
        if not name:
            return f"Configured DLQ topic name in share group: {group_id} is empty."
        if name.startswith("__"):
            return f"Configured DLQ topic name in share group: {group_id} cannot start with __, topic: {name}."
        config = self._broker.metadata.broker_config()
        topic = self._broker.image().topics.get(name)
        if topic is None:
            if not config.errors_deadletterqueue_auto_create_topics_enable:
                return (
                    "DLQ topic does not exist and auto create is disabled on cluster for "
                    f"share group: {group_id}, topic: {name}."
                )
        elif not self._broker.metadata.topic_config(topic).errors_deadletterqueue_group_enable:
            return f"DLQ is not enabled on configured DLQ topic for share group: {group_id}, topic: {name}."
        prefix = config.errors_deadletterqueue_topic_name_prefix
        if not name.startswith(prefix):
            return (
                "Configured DLQ topic name does not comply with the DLQ topic prefix in "
                f"share group: {group_id}, topic: {name}, prefix: {prefix}."
            )
        return None

    def _max_batch_bytes(self, topic: str) -> int:
        """Return the topic's maximum batch size."""
        state = self._broker.image().topics.get(topic)
        metadata = self._broker.metadata
        if state is None:
            return metadata.broker_config().message_max_bytes
        return metadata.topic_config(state).max_message_bytes

    def _read_originals(self, pending: _Pending) -> None:
        letters = pending.letters
        max_bytes = self._max_batch_bytes(self._settings.dead_letter_topic(letters.group_id))
        pending.originals = Originals(pending.next_offset, letters.last_offset, max_bytes)
        pending.originals.read(self._read_log, letters.source)

    # -- the topic --------------------------------------------------------------------------------

    def _look_up_new(self) -> None:
        new, self._new = self._new, deque()
        for pending in new:
            if not self._queue_for_leader(pending):
                self._create_topic(pending)

    def _queue_for_leader(self, pending: _Pending) -> bool:
        """Queue the letters for the leader of their partition; return False if it has no live leader."""
        image = self._broker.image()
        source = pending.letters.source
        name = self._settings.dead_letter_topic(pending.letters.group_id)
        topic = image.topics.get(name)
        if topic is None:
            return False
        number = source.partition % len(topic.partitions)
        leader = image.alive_broker(topic.partitions[number].leader)
        if leader is None:
            return False
        pending.destination = TopicIdPartition(topic.topic_id, number, name)
        pending.leader = leader.broker_id
        self._queue.waiting_for(leader.broker_id).append(pending)
        return True

    def _create_topic(self, pending: _Pending) -> None:
        """Case B: ask a random broker to create the topic."""
        image = self._broker.image()
        brokers = [broker_id for broker_id in image.brokers if image.alive_broker(broker_id) is not None]
        if not brokers:
            self._give_up(pending, ErrorCode.BROKER_NOT_AVAILABLE.name)
            return
        self._creations.send(
            self._broker.random.choice(brokers),
            self._settings.dead_letter_topic(pending.letters.group_id),
            partial(self._broker.process.actions.serve, self._handle_create_topics_response, pending),
            kind=pending,
        )

    def _handle_create_topics_response(self, pending: _Pending, error: ErrorCode | None) -> None:
        pending.creations += 1
        if error is ErrorCode.NONE and self._queue_for_leader(pending):
            pending.creations = 0
            self._queue.send_soon()
        elif error and error not in _CREATED_ALREADY:
            self._give_up(pending, error.name)
        elif pending.creations < MAX_ATTEMPTS:
            self._try_later(pending, pending.creations)
        else:
            self._give_up(pending, "Exhausted max retries to create DLQ topic without success.")

    # -- requests ---------------------------------------------------------------------------------

    def _next_request(self, waiting: deque[_Pending]) -> tuple[Append, Callable[[Appended | None], object]]:
        """Return the next request, with the letters that fit into one batch per partition, and its callback."""
        records: dict[TopicIdPartition, list[Record]] = {}
        sizes: Counter[TopicIdPartition] = Counter()
        sent_letters: list[_Pending] = []
        remaining: list[_Pending] = []
        for pending in waiting:
            key = pending.destination
            max_bytes = self._max_batch_bytes(key.topic or "")
            letters, size = self._next_letters(pending, max_bytes)
            if sizes[key] and sizes[key] + size > max_bytes:
                remaining.append(pending)
                continue
            records.setdefault(key, []).extend(letters)
            sizes[key] += size
            sent_letters.append(pending)
            self.requests[pending.letters.group_id] += 1
        waiting.clear()
        waiting.extend(remaining)
        request = {key: build_batch(letters) for key, letters in records.items()}
        return request, partial(self._broker.process.actions.serve, self._handle_produce_response, sent_letters)

    def _next_letters(self, pending: _Pending, max_bytes: int) -> tuple[list[Record], int]:
        """Return the letters that fit into a batch, at least one, and the batch size in bytes."""
        originals = pending.originals
        end = pending.letters.last_offset
        if originals is not None:
            end = max(pending.next_offset, min(end, originals.last_offset))
        now_ms = self._broker.clock.wall_clock_ms()
        letters: list[Record] = []
        size = BATCH_OVERHEAD_BYTES
        for offset in range(pending.next_offset, end + 1):
            original = None if originals is None else originals.records.get(offset)
            key, value = (None, None) if original is None else (original.key, original.value)
            letter = Record(value, key, now_ms, headers=pending.letters.headers(offset))
            letter_size = record_size(letter._replace(offset=len(letters)))
            if letters and size + letter_size > max_bytes:
                break
            letters.append(letter)
            size += letter_size
            if size > max_bytes:
                break
        pending.last_included_offset = pending.next_offset + len(letters) - 1
        return letters, size

    def _handle_produce_response(self, sent: list[_Pending], answer: Appended | None) -> None:
        for pending in sent:
            error = ErrorCode.NETWORK_EXCEPTION if answer is None else answer[pending.destination]
            self._handle_outcome(pending, error)
        if self._queue:
            self._queue.send_soon()

    def _handle_outcome(self, pending: _Pending, error: ErrorCode) -> None:
        pending.requests += 1
        group_id = pending.letters.group_id
        if not error:
            self._letters_written(pending)
        elif error in _MOVED and pending.requests < MAX_ATTEMPTS:
            self._try_later(pending, pending.requests)
        else:
            self.failed_requests[group_id] += 1
            self._give_up(pending, error.name)

    def _letters_written(self, pending: _Pending) -> None:
        """Case C: finish, or continue with the rest."""
        self.records[pending.letters.group_id] += pending.last_included_offset - pending.next_offset + 1
        pending.requests = 0
        if pending.last_included_offset >= pending.letters.last_offset:
            pending.on_done()
            return
        pending.next_offset = pending.last_included_offset + 1
        if pending.originals is not None:
            self._read_originals(pending)
        self._queue.waiting_for(pending.leader).append(pending)

    def _try_later(self, pending: _Pending, attempts: int) -> None:
        delay_ms = backoff_ms(attempts, self._broker.random)
        self._broker.call_later(delay_ms, self._broker.process.actions.serve, self._enqueue, pending)

    def _give_up(self, pending: _Pending, reason: str) -> None:
        """Cases A and E: log why the letters from `next_offset` on are not written, and finish."""
        letters = pending.letters
        self.given_up[letters.group_id] += letters.last_offset - pending.next_offset + 1
        self._log.error(
            "dead_letters_not_written",
            group_id=letters.group_id,
            partition=str(TopicPartition(letters.source.topic or "", letters.source.partition)),
            first_offset=pending.next_offset,
            last_offset=letters.last_offset,
            reason=reason,
        )
        pending.on_done()

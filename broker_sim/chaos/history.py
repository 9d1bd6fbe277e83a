"""The history of a run: acknowledged and committed records and offsets, and notes of the application.

`chaos.history` offers ready judgements on it:

    chaos.start(worker, count=2)
    await chaos.faults_over()
    await chaos.history.exactly_once("orders", "bills", group="shop")

With a command in real time `judge` reads them from the command line.
"""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.chaos import checkers
from broker_sim.chaos.checkers import Ended
from broker_sim.errors import ConfigError, did_you_mean
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.cluster.records import TopicRecords
    from broker_sim.handlers.request_log import RequestStatus

    Identity = Callable[[Any], Hashable]
    _Offset = tuple[tuple[str, str, int], int]
    """(group, topic, partition), and a committed offset."""

WITHIN_S: Final = 30.0
"""Default of seconds that work may take after the faults, until a judgement fails."""
POLL_INTERVAL_S: Final = 0.1
__tracebackhide__ = True
"""Makes pytest end the traceback of a failed judgement at the line of the test."""
JUDGEMENT_FORMS: Final = ("lost=TOPIC", "lost=TOPIC:OUTPUT", "twice=TOPIC", "order=TOPIC:OUTPUT", "once=TOPIC:OUTPUT",
                     "once=TOPIC:OUTPUT:GROUP", "back=GROUP")  # fmt: skip
"""Forms of the values of `--judge`."""


class InvariantError(AssertionError):
    """An invariant of a test is violated."""

    def __init__(self, invariant: str, text: str = "") -> None:
        super().__init__(f"{invariant}: {text}" if text else invariant)
        self.invariant = invariant


def value_of(record: Any) -> Hashable:
    """Return the value of a record, by default its identity in judgements; or the item itself if it has no value."""
    value: Hashable = getattr(record, "value", record)
    return value


class _Part(NamedTuple):
    """The contribution of one request to a transaction."""

    number: int
    """Position of the request, see `RequestStatus.number`."""
    producer: tuple[int, int]
    """Its id and epoch; transactions of a fenced producer are never committed."""
    topics: Sequence[str] = ()
    offsets: Sequence[_Offset] = ()


class _End(NamedTuple):
    """The end of a transaction."""

    number: int
    producer: tuple[int, int]
    transactional_id: str
    committed: bool


class History:
    """The events of one run. Thread rule: the event loop of the cluster."""

    def __init__(self, kafka: AsyncCluster) -> None:
        self._kafka = kafka
        self._acknowledged: dict[str, dict[tuple[int, int, bytes | None], None]] = {}
        """Acknowledged records of non-transactional producers by topic, as (partition, offset, value).

        An offset has several values if a new leader lacks records that the former one has acknowledged.
        """
        self._commits: list[tuple[int, _Offset]] = []
        """Offsets committed outside of transactions, with the numbers of the requests.

        Requests are kept in the order of their responses, which is another one: a broker that was paused responds late.
        """
        self._transactional: list[_Part | _End] = []
        self._sent: dict[str, list[Hashable]] = {}
        self._handled: list[Any] = []
        self._reads: list[Any] = []
        self._seen: list[tuple[Hashable, Any]] = []

    # -- notes of the application -------------------------------------------------------------------

    def sent(self, topic: str, item: Hashable) -> None:
        """Note an item that must be in a topic, such as an order that was confirmed to a customer."""
        self._sent.setdefault(topic, []).append(item)

    def read(self, record: Any) -> None:
        """Note a record that a consumer has read."""
        self._reads.append(record)

    def handled(self, record: Any) -> None:
        """Note that the work of a record is done."""
        self._handled.append(record)

    def saw(self, what: Hashable, version: Any) -> None:
        """Note that this worker has seen a version of something, such as a sum."""
        process = PROCESS.get()
        self._seen.append(((process.name if process else "test", what), version))

    # -- responses of brokers ------------------------------------------------------------------------

    def take(self, request: RequestStatus) -> None:
        """Add an answered request."""
        take = getattr(self, f"_take_{request.api}", None)
        if take is not None and request.response is not None:
            take(request.number, request.request, request.response)

    def _take_Produce(self, number: int, request: Any, response: Any) -> None:  # noqa: N802 - the name of an API
        offsets = {
            (self._topic(topic), each.index): each.base_offset
            for topic in response.responses
            for each in topic.partition_responses
            if not each.error_code and each.base_offset >= 0
        }
        for topic in request.topic_data:
            name = self._topic(topic)
            for each in topic.partition_data:
                base_offset = offsets.get((name, each.index))
                if base_offset is None or each.records is None:
                    continue
                header = parse_header(each.records)
                if header.is_transactional:
                    producer = header.producer_id, header.producer_epoch
                    self._transactional.append(_Part(number, producer, topics=[name]))
                else:
                    values = self._acknowledged.setdefault(name, {})
                    for place, record in enumerate(iter_records(each.records)):
                        value = None if record.value is None else bytes(record.value)
                        values[each.index, base_offset + place, value] = None

    def _take_OffsetCommit(self, number: int, request: Any, response: Any) -> None:  # noqa: N802 - the name of an API
        self._commits += ((number, offset) for offset in self._offsets(request, response))

    def _take_TxnOffsetCommit(self, number: int, request: Any, response: Any) -> None:  # noqa: N802 - the name of an API
        producer = request.producer_id, request.producer_epoch
        self._transactional.append(_Part(number, producer, offsets=[*self._offsets(request, response)]))

    def _take_EndTxn(self, number: int, request: Any, response: Any) -> None:  # noqa: N802 - the name of an API
        if not response.error_code:
            producer = request.producer_id, request.producer_epoch
            self._transactional.append(_End(number, producer, request.transactional_id, request.committed))

    def _transactions(self) -> Iterator[tuple[int, Ended, Sequence[_Offset]]]:
        """Yield the committed transactions in their order: the number of the end, the transaction, its offsets."""
        open_: dict[tuple[int, int], list[_Part]] = {}
        for event in sorted(self._transactional, key=itemgetter(0)):
            if isinstance(event, _Part):
                open_.setdefault(event.producer, []).append(event)
            else:
                parts = open_.pop(event.producer, [])
                if event.committed:
                    topics = frozenset(name for part in parts for name in part.topics)
                    offsets = [offset for part in parts for offset in part.offsets]
                    groups = frozenset(group for (group, _, _), _ in offsets)
                    yield event.number, Ended(event.transactional_id, topics, groups), offsets

    def _offsets(self, request: Any, response: Any) -> Iterator[_Offset]:
        """Yield the committed offsets."""
        refused = {
            (self._topic(topic), each.partition_index)
            for topic in response.topics
            for each in topic.partitions
            if each.error_code
        }
        for topic in request.topics:
            name = self._topic(topic)
            for each in topic.partitions:
                if (name, each.partition_index) not in refused:
                    yield (request.group_id, name, each.partition_index), each.committed_offset

    def _topic(self, topic: Any) -> str:
        """Return the name of a topic in a message, which contains its name or its id."""
        name: str = topic.name
        return name or self._kafka.nodes.controller.image.topic_names.get(topic.topic_id, "")

    # -- judgements ---------------------------------------------------------------------------------

    async def nothing_lost(
        self, topic: str, into: str | None = None, *, of: Identity = value_of, within_s: float = WITHIN_S
    ) -> None:
        """Wait until all acknowledged records and all items of `sent` are in the topic and are handled.

        A record is handled if `handled` has noted it, or if the topic `into` has a record for it, where `of(record)`
        is the identity of the input; with neither it only has to be in the topic. Raises InvariantError after
        `within_s`.
        """
        await self._eventually(lambda: self._lost(topic, into, of), f"nothing of {topic} is lost", within_s)

    def _lost(self, topic: str, into: str | None, of: Identity) -> str:
        stored = self._records(topic)
        acknowledged = [*(value for _, _, value in self._acknowledged.get(topic, {})), *self._sent.get(topic, [])]
        gone = checkers.lost(acknowledged, map(value_of, stored))
        if into is None and not self._handled:
            return gone
        outcome = self._handled if into is None else self._records(into)
        return gone or checkers.lost(map(value_of, stored), map(of, outcome))

    def nothing_twice(self, topic: str | None = None, *, of: Identity = value_of) -> None:
        """Raise InvariantError if a topic, by default the handled records, contains an item more than once."""
        outcome = self._handled if topic is None else self._records(topic)
        _claim(f"nothing of {topic or 'the handled records'} occurs twice", checkers.twice(map(of, outcome)))

    def order_kept(self, topic: str, into: str | None = None, *, of: Identity = value_of) -> None:
        """Raise InvariantError if records of one key were handled, or written to `into`, in a different order."""
        inputs = [(record.key, record.value) for record in self._records(topic)]
        outcome = self._handled if into is None else self._records(into)
        _claim(f"the order of {topic} is kept", checkers.disordered(inputs, map(of, outcome)))

    async def exactly_once(
        self, topic: str, into: str, *, group: str | None = None, of: Identity = value_of, within_s: float = WITHIN_S
    ) -> None:
        """Wait until each record of a topic has an output in `into`; raise InvariantError unless it is exactly one.

        With `group` each output must be written in one transaction with offsets of that group.
        """
        invariant = f"each of {topic} is exactly once in {into}"
        await self._eventually(lambda: self._lost(topic, into, of), invariant, within_s)
        inputs, outputs = [*map(value_of, self._records(topic))], [*map(of, self._records(into))]
        _claim(invariant, checkers.not_once(inputs, outputs))
        if group is not None:
            ended = [transaction for _, transaction, _ in self._transactions()]
            alone = "" if ended else f"{into} is written without transactions"
            _claim(f"{into} is committed together with offsets of {group}", alone or checkers.torn(ended, into, group))

    def reads_never_go_back(self) -> None:
        """Raise InvariantError if a worker `saw` an older version after a newer one."""
        _claim("reads never go back", checkers.gone_back(self._seen))

    def commits_never_go_back(self, group: str) -> None:
        """Raise InvariantError if a group has committed a smaller offset of a partition after a larger one."""
        together = ((number, offset) for number, _, offsets in self._transactions() for offset in offsets)
        in_order = sorted([*self._commits, *together], key=itemgetter(0))
        steps = [(place, offset) for _, (place, offset) in in_order if place[0] == group]
        _claim(f"offsets of {group} never go back", checkers.gone_back(steps))

    def only_committed_is_read(self) -> None:
        """Raise InvariantError if a record that was `read` is not in its topic, or was never committed."""
        topics = sorted({record.topic for record in self._reads})
        stored = [(each.topic, each.partition, each.offset) for topic in topics for each in self._records(topic)]
        reads = [((each.topic, each.partition, each.offset), each.value) for each in self._reads]
        _claim("only what is committed is read", checkers.uncommitted(reads, stored))

    async def judge(self, text: str, within_s: float = WITHIN_S) -> None:
        """Make a judgement in one of the forms of `JUDGEMENT_FORMS`. Raises InvariantError, and ConfigError."""
        name, names = read_judgement(text)
        if name == "lost":
            await self.nothing_lost(*names, within_s=within_s)
        elif name == "twice":
            self.nothing_twice(*names)
        elif name == "order":
            self.order_kept(*names)
        elif name == "once":
            await self.exactly_once(names[0], names[1], group=names[2] if len(names) > 2 else None, within_s=within_s)
        else:
            self.commits_never_go_back(*names)

    def _records(self, topic: str) -> TopicRecords:
        return self._kafka.records(topic)

    async def _eventually(self, judge: Callable[[], str], invariant: str, within_s: float) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        while text := judge():
            if loop.time() >= end_s:
                raise InvariantError(invariant, text)
            await asyncio.sleep(POLL_INTERVAL_S)


def read_judgement(text: str) -> tuple[str, Sequence[str]]:
    """Return the name of a judgement, and the names of its topics and group. Raises ConfigError."""
    name, _, rest = text.partition("=")
    names = rest.split(":")
    forms = [form for form in JUDGEMENT_FORMS if form.partition("=")[0] == name]
    if not all(names) or len(names) not in {form.count(":") + 1 for form in forms}:
        hint = "" if forms else did_you_mean(name, (form.partition("=")[0] for form in JUDGEMENT_FORMS))
        raise ConfigError(f"unknown judgement {text!r}{hint}; write {', '.join(forms or JUDGEMENT_FORMS)}")
    return name, names


def _claim(invariant: str, text: str) -> None:
    if text:
        raise InvariantError(invariant, text)

"""What must hold after a run: each check returns lines, one for each thing that is wrong."""

from collections import Counter, defaultdict

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from .schedule import PARTITIONS

READ_TIMEOUT_S = 60
SHOWN = 5


def read_to_the_end(bootstrap_servers, topic, isolation="read_committed"):
    """Return (offset, value) of all records of each partition, as far as that isolation shows them."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "checks",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    found, ended = {each: [] for each in range(PARTITIONS)}, set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(READ_TIMEOUT_S)
        assert message is not None, f"only {ended} of the partitions of {topic} ended"
        if message.error() is None:
            found[message.partition()].append((message.offset(), message.value()))
            ended.discard(message.partition())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return found


def check_acknowledged(producer, records):
    """Each acknowledged record is at its offset, in order, and nothing is there twice."""
    wrong = [f"{producer.name}: not acknowledged {each}" for each in producer.failed[:SHOWN]]
    own = producer.name.encode() + b"-"
    for partition, acknowledged in producer.acknowledged.items():
        there = [value for _, value in records[partition] if value.startswith(own)]
        twice = [value for value, count in Counter(there).items() if count > 1]
        if twice:
            wrong.append(f"{producer.name}: twice in input-{partition}: {twice[:SHOWN]}")
        places = {value: offset for offset, value in records[partition]}
        # librdkafka does not know the offset of a record whose retry was refused as a duplicate.
        lost = [
            (offset, value)
            for offset, value in acknowledged
            if value not in places or offset not in (None, places[value])
        ]
        if lost:
            other = [(*each, places.get(each[1])) for each in lost[:SHOWN]]
            wrong.append(
                f"{producer.name}: {len(lost)} of {len(acknowledged)} acknowledged are not at their "
                f"offset in input-{partition}; (told, value, where it is): {other}"
            )
        numbers = [int(value.rpartition(b"-")[2]) for value in there]
        if numbers != sorted(numbers):
            wrong.append(f"{producer.name}: out of order in input-{partition}")
    return wrong


def used_again(clients, committed, uncommitted):
    """Return the records that a broker took for others, those of aborted transactions.

    Each is of a committed transaction, but where its report says, an aborted record is. librdkafka gives
    the sequence number of a record that it gave up at an abort to the next one (docs/recipes/transactions.md).
    """
    shown = {(place, offset) for place, found in committed.items() for offset, _ in found}
    there = {(place, offset) for place, found in uncommitted.items() for offset, _ in found}
    aborted = there - shown
    return {value for client in clients for *place, value in client.committed if tuple(place) in aborted}


def check_copied(read, written, excused=frozenset()):
    """The copy has what was read, each record once and in the same order."""
    wrong = []
    for partition, records in read.items():
        source = [value for _, value in records if value not in excused]
        copy = [value for _, value in written[partition] if value not in excused]
        if source == copy:
            continue
        there = set(copy)
        missing = [value for value in source if value not in there]
        twice = [value for value, count in Counter(copy).items() if count > 1]
        wrong.append(
            f"output-{partition} is not a copy of input-{partition}: {len(missing)} missing "
            f"{missing[:SHOWN]}, {len(twice)} twice {twice[:SHOWN]}, {len(source)} and {len(copy)} records"
        )
    return wrong


def check_pairs(producer, records, excused=frozenset()):
    """A committed transaction shows both of its records, another one none; nothing is there twice."""
    own = producer.name.encode() + b"-"
    places = defaultdict(list)
    for partition, found in records.items():
        for offset, value in found:
            if value.startswith(own):
                places[value].append((partition, offset))
    wrong = []
    for value, outcome in producer.outcomes.items():
        found = places[value]
        allowed = {True: (2,), False: (0,), None: (0, 2)}[outcome]
        if value in excused:
            allowed = (0, 1)
        if len(found) not in allowed or len({partition for partition, _ in found}) != len(found):
            told = {True: "committed", False: "aborted", None: "not told"}[outcome]
            wrong.append(f"{value.decode()} ({told}) shows {len(found)} of its records: {found}")
    return wrong


def check_ended(status):
    """No transaction is open, neither for its coordinator nor in a partition."""
    wrong = [
        f"transaction {each['transactional_id']} is {each['state']} on broker {each['coordinator']}"
        for each in status["transactions"]
        if each["state"] not in {"Empty", "CompleteCommit", "CompleteAbort"}
    ]
    return wrong + [
        f"{each['topic']}-{each['partition']} has an open transaction of producer {each['producer_id']}"
        for each in status["producers"]
        if each["transaction_start_offset"] is not None
    ]


def check_answered(requests, *, received_before_ms):
    """Every request that came before that time has been answered; so is one that wants no answer."""
    return [
        f"no answer for {each['api']} v{each['api_version']} of {each['client_id']} to broker "
        f"{each['broker']}, received {each['received_ms']}"
        for each in requests
        if each["elapsed_ms"] is None and each["received_ms"] < received_before_ms
    ]

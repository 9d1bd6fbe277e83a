"""The life of a group with each client, by each protocol it has, on both sides."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product

import pytest
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.cluster_under_test.polling import poll_until

SESSION_MS = 6000
LONG_SESSION_MS = 240_000
AT_A_TIME = 4
"""So many groups live at the same time: most of the time each of them waits for a session's end."""
PARTITIONS = 4
HALF = PARTITIONS // 2
RECORDS = 5

CLIENTS = [
    # It commits every five seconds, so it begins first.
    ("kcat", "range"),
    ("kcat", "cooperative-sticky"),
    ("confluent", "range"),
    ("confluent", "cooperative-sticky"),
    ("confluent", "consumer"),
    ("kafka_python", "range"),
    ("kafka_python", "roundrobin"),
    ("kafka_python", "sticky"),
    ("kafka_python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
    ("aiokafka", "sticky"),
    ("java", "range"),
    ("java", "cooperative-sticky"),
    ("java", "consumer"),
    ("franz_go", "range"),
    ("franz_go", "cooperative-sticky"),
]
EAGER = {"range", "roundrobin", "sticky"}
"""Members give up everything before each rebalance."""
SHARES = {"range": [[0, 1], [2, 3]], "roundrobin": [[0, 2], [1, 3]]}
"""What two members get of one topic."""


def live(side, members, alter_group, kind, strategy):
    """Let a group of one kind of client live, from its first member to its last."""
    topic, group = side.names()
    side.create_topic(topic, PARTITIONS)

    def start(**more):
        return members.start(kind, group, topic, strategy, **more)

    def all_committed(offset):
        wanted = dict.fromkeys(range(PARTITIONS), offset)
        poll_until(lambda: side.committed(group) == wanted, f"{group} has committed {wanted}")

    side.produce(topic, PARTITIONS, RECORDS)
    first = start()
    first.wait_until_owns(PARTITIONS)
    all_committed(RECORDS)

    second = start(session_ms=SESSION_MS)
    second.wait_until_owns(HALF)
    first.wait_until_owns(HALF)
    everything = set(range(PARTITIONS))
    assert first.owned | second.owned == everything
    shares = sorted(sorted(member.owned) for member in (first, second))
    assert shares == SHARES.get(strategy, shares)
    assert sorted(first.revoked) == sorted(everything if strategy in EAGER else second.owned)
    if strategy != "consumer":
        # A group has none while it rebalances, and cooperative members rebalance twice.
        poll_until(lambda: side.assignor(group) == strategy, f"{group} has agreed on {strategy}")
    side.produce(topic, PARTITIONS, RECORDS)
    all_committed(2 * RECORDS)
    second.wait_until_read(HALF * RECORDS)
    assert {partition for partition, _ in second.records} == second.owned

    killed_ms = now_ms()
    second.kill()
    assert first.wait_until_owns(PARTITIONS) - killed_ms > SESSION_MS / 2

    # From here on nobody is lost by a session's end: whoever leaves has said so.
    if strategy == "consumer":
        long = {"consumer.session.timeout.ms": LONG_SESSION_MS}
        alter_group(side.bootstrap_servers, group, long)
    third = start()
    third.wait_until_owns(HALF)
    first.wait_until_owns(HALF)
    third.leave()
    first.wait_until_owns(PARTITIONS)

    first.leave()
    poll_until(lambda: side.state(group) == "EMPTY", f"{group} is empty")
    side.produce(topic, PARTITIONS, RECORDS)
    restarted = start()
    restarted.wait_until_owns(PARTITIONS)
    all_committed(3 * RECORDS)
    restarted.leave()
    assert min(offset for _, offset in restarted.records) == 2 * RECORDS
    read = [record for member in (first, second, third, restarted) for record in member.records]
    assert sorted(read) == sorted(product(everything, range(3 * RECORDS))), "each record once"


@pytest.fixture(scope="module")
def lives(side, open_members, alter_group, request):
    """Return the outcomes of all clients that are tested here, by client and strategy."""

    def outcome(kind, strategy):
        with closing(open_members()) as members:
            live(side, members, alter_group, kind, strategy)

    chosen = [
        (item.callspec.params["kind"], item.callspec.params["strategy"])
        for item in request.session.items
        if item.path == request.path and item.callspec.params["side"] == side.name
    ]
    pool = ThreadPoolExecutor(AT_A_TIME)
    yield {one: pool.submit(outcome, *one) for one in chosen}
    pool.shutdown(cancel_futures=True)


@pytest.mark.threads
@pytest.mark.parametrize(("kind", "strategy"), CLIENTS, ids=lambda value: value)
def test_members_join_die_leave_and_go_on_at_the_commit(lives, kind, strategy):
    lives[kind, strategy].result()

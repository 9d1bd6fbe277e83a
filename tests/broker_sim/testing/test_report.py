"""The report of a failed test tells what was there when it failed."""

pytest_plugins = ["pytester"]

FAILING = """
import contextlib

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

pytestmark = pytest.mark.virtual_time(limit_s=60, configs={"replica.lag.time.max.ms": 60_000})

@pytest.fixture
async def clients(kafka):
    await kafka.create_topic("orders", partitions=1, replication_factor=3)
    servers = kafka.bootstrap_servers
    async with (
        AIOKafkaProducer(bootstrap_servers=servers, acks="all", client_id="sender") as producer,
        AIOKafkaConsumer("orders", group_id="readers", bootstrap_servers=servers) as consumer,
    ):
        yield producer, consumer

@contextlib.asynccontextmanager
async def paused(kafka, broker_id):
    kafka.pause(broker_id)
    try:
        yield
    finally:
        await asyncio.sleep(1)
        kafka.resume(broker_id)

async def test_state(kafka, clients):
    producer, consumer = clients
    async with asyncio.timeout(20):
        await producer.send_and_wait("orders", b"first")
    leader = kafka.leader("orders")
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, client_id="other") as other:
        await other.send_and_wait("orders", b"second")
        await asyncio.sleep(1.2)
        async with paused(kafka, kafka.followers("orders")[0]):
            assert kafka.leader("orders") != leader, "as it should"

async def test_contexts_that_hang():
    class Hangs:
        async def __aenter__(self):
            pass

        async def __aexit__(self, *_):
            await asyncio.Event().wait()

    async with Hangs():
        assert False, "the first failure counts"
"""


def test_report_has_requests_parked_operations_partitions_and_groups(run_suite):
    result = run_suite(FAILING)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: as it should",
            "E * seed 0, * s of virtual time, trace *; last events:",
            "E * brokers:",
            "E * ? is paused",
            "E * partitions:",
            "E * orders-0: leader ?, epoch 0, ISR ?,?,? of ?,?,?, high watermark 2; logs: *",
            "E * groups:",
            "E * readers: Stable, coordinator ?, 1 members (aiokafka-* has orders-0), lag *",
            "E * parked:",
            "E * last requests of other:",
            "E * s Produce orders-0 to broker ?, answered after 0 ms",
            "E * seed 0 failed, 0 before it passed; repeat it alone:",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "E * Fetch of broker ?: * wait for records, the first for * ms more: orders-0",
            "E * Heartbeat of broker ?: 1 waits for a heartbeat of the member, *",
        ]
    )


def test_failure_is_reported_though_the_test_does_not_end_after_it(run_suite):
    result = run_suite(FAILING, "-k", "hang")
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: the first failure counts",
            "E *and then the test did not end: nothing is ready and no timer runs*",
        ]
    )


HANGING = """
@pytest.fixture
async def client():
    yield
    while True:
        await asyncio.sleep(10)

@pytest.mark.virtual_time(seeds=3)
async def test_fails(client):
    assert False, "the first failure counts"
"""


def test_fixture_that_does_not_end_is_reported_beside_the_failure(run_suite):
    result = run_suite(HANGING)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: the first failure counts",
            "*Captured virtual time teardown*",
            "more than the allowed 600.0 s pass at the end of the run, at 600.0 s *; where it waits:",
            "*_iterate) > *(client) > *",
        ]
    )

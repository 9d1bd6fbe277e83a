"""Every seed has fixtures of its own, on the virtual loop, and depends on nothing but itself."""

import re

pytest_plugins = ["pytester"]

LEAK = """
@pytest.fixture
def seen():
    return []

class TestState:
    seeds = []

    @pytest.mark.virtual_time(seeds=3)
    async def test_state(self, seen, tmp_path):
        assert not (seen or hasattr(self, "mine") or list(tmp_path.iterdir()))
        seen.append(1)
        self.mine = 1
        (tmp_path / "file").touch()
        self.seeds.append(asyncio.get_running_loop().seed)

def test_all_seeds_ran():
    assert TestState.seeds == [0, 1, 2]
"""


def test_no_seed_sees_what_another_left_behind(run_suite):
    run_suite(LEAK).assert_outcomes(passed=2)


ON_THE_LOOP = """
import contextvars, random

said = contextvars.ContextVar("said")
log = []

@pytest.fixture(scope="module")
def wide():
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    log.append("wide")
    yield
    log.append("wide ends")

@pytest.fixture
def start(wide):
    assert asyncio.get_running_loop().seed in {0, 1}
    time.sleep(3)
    yield time.monotonic(), random.random()
    log.append(f"start ends at {time.monotonic()}")

@pytest.fixture
async def topic(kafka, start):
    await kafka.create_topic("orders", replication_factor=3)
    said.set("by a fixture")
    return "orders"

class TestWithMethods:
    owner = "class"

    @pytest.fixture
    async def beating(self, topic):
        self.owner = "instance"
        beats = []

        async def beat():
            while True:
                beats.append(time.monotonic())
                await asyncio.sleep(1)

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(beat())
            yield beats
            task.cancel()
            await asyncio.sleep(2)
        log.append(f"beating ends at {time.monotonic()}")

    @pytest.mark.virtual_time(seeds=2)
    async def test_loop(self, kafka, topic, beating, start):
        assert (self.owner, said.get(), start[0]) == ("instance", "by a fixture", 3)
        assert len(kafka.isr(topic)) == 3
        await asyncio.sleep(10)
        assert len(beating) >= 10
        log.append(f"{start[1]} at {time.monotonic()}")

def test_order():
    assert [line.partition(" at")[0] for line in log[2:4]] == ["beating ends", "start ends"]
    assert (log[0], len(log)) == ("wide", 7)
    ends = [float(line.rpartition(" ")[2]) for line in log if " at " in line]
    assert ends[1] == ends[2] == ends[0] + 2
    assert [line.split()[0] for line in (log[1], log[4])] == NUMBERS
"""


def test_fixtures_of_function_scope_run_on_the_loop_and_use_the_cluster(run_suite):
    import random

    numbers = [str(random.Random(f"{seed}/program").random()) for seed in (0, 1)]
    run_suite(f"NUMBERS = {numbers}{ON_THE_LOOP}").assert_outcomes(passed=2)


FAILING = """
@pytest.fixture(scope="module")
def wide():
    yield
    print("wide is", "torn down")

@pytest.fixture
async def fails(wide):
    yield
    assert asyncio.get_running_loop().seed < 1, "at the end"

@pytest.fixture
async def fails_first():
    await asyncio.sleep(2)
    assert not "set up"

@pytest.fixture
async def hangs():
    await asyncio.Event().wait()

@pytest.mark.virtual_time(seeds=3)
async def test_ends(fails):
    pass

@pytest.mark.virtual_time(seeds=3)
async def test_begins(fails_first):
    pass

@pytest.mark.virtual_time(seeds=3)
async def test_hangs(hangs):
    pass

@pytest.mark.virtual_time(seeds=3)
@pytest.mark.xfail(strict=True)
async def test_is_to_fail(kafka):
    assert asyncio.get_running_loop().seed < 1

@pytest.mark.virtual_time(seeds=3)
@pytest.mark.xfail(strict=True)
async def test_never_fails():
    pass
"""


def test_errors_of_fixtures_name_the_seed_and_end_the_test(run_suite):
    result = run_suite(FAILING, "-rP", "-s")
    result.assert_outcomes(errors=3, passed=1, xfailed=1, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "E * at the end",
            "E * seed 1 failed, 1 before it passed; repeat it alone:",
            "E *test_ends --virtual-seed=1",
            "E * seed 0, 2.0 s of virtual time, trace *",
            "E *test_begins --virtual-seed=0",
            "E *VirtualDeadlockError: nothing is ready and no timer runs*",
            "*hangs-1 waits at test_errors_*(hangs) > *",
            "*XPASS(strict)*",
        ]
    )
    assert result.stdout.str().count("wide is torn down") == 1


SAY_DIGEST = """
import random, secrets, uuid

@pytest.fixture
async def topic(kafka):
    await kafka.create_topic(f"orders-{{uuid.uuid4()}}", replication_factor=3)

@pytest.mark.virtual_time(seeds={seeds}, order="seeded", latency_ms=(0.1, 5), trace_steps=True)
async def {name}(topic):
    {first}
    for _ in range(10):
        await asyncio.sleep(random.random())
    loop = asyncio.get_running_loop()
    print("seed", loop.seed, secrets.token_hex(4), loop.trace.digest())
"""


def test_seed_depends_on_the_seed_alone(run_suite):
    """Neither on the seeds before, nor on other tests, nor on the names of the test's module."""
    lazily = "import late_one; import tempfile; tempfile.mktemp()"
    files = {
        "test_many": SAY_DIGEST.format(seeds=3, name="test_it", first=lazily),
        "test_other": SAY_DIGEST.format(seeds=2, name="test_it", first=lazily),
        "late_one": "import random\nNUMBER = random.random()",
    }
    together = run_suite("", "-s", **files)
    together.assert_outcomes(passed=2)
    alone = run_suite("", "-s", "test_other.py", "--virtual-seed=1")
    found = re.findall(r"seed (\d) (\w+) (\w+)", together.stdout.str())
    assert [seed for seed, *_ in found] == ["0", "1", "2", "0", "1"]
    assert len({digest for *_, digest in found}) == 3
    assert found[:2] == found[3:]
    assert re.findall(r"seed (\d) (\w+) (\w+)", alone.stdout.str()) == [found[1]]


IMPORTS_LATE = """
@pytest.mark.virtual_time(seeds=2)
async def test_produces(kafka):
    from aiokafka import AIOKafkaProducer

    await kafka.create_topic("orders")
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        record = await producer.send_and_wait("orders", b"value")
    assert abs(record.timestamp - time.time() * 1000) < 60_000
    assert AIOKafkaProducer.__module__ == "aiokafka.producer.producer"
"""


def test_client_that_is_first_imported_in_a_run_has_virtual_time(run_suite):
    run_suite(IMPORTS_LATE).assert_outcomes(passed=1)

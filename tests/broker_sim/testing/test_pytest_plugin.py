"""The plugin as a user's suite has it: pytest in a process of its own."""

import re
import subprocess
import sys

import pytest

from broker_sim.page.recording import runs_of_html

pytest_plugins = ["pytester"]

WITH_CLUSTER = """
from aiokafka import AIOKafkaProducer

@pytest.mark.virtual_time(seeds=4, order="seeded", latency_ms=(0.1, 5))
@pytest.mark.parametrize("word", ["two words"])
async def test_orders(kafka, word):
    await kafka.create_topic("orders", partitions=1, replication_factor=3)
    async with AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, acks="all"
    ) as producer:
        for number in range(20):
            await producer.send_and_wait("orders", b"%d" % number)
    assert asyncio.get_running_loop().seed < 2
"""


def seeds_in(result):
    return [int(line.rpartition(" ")[2]) for line in result.outlines if "ran seed" in line]


SAY_SEED = """
@pytest.mark.virtual_time(seeds=3)
async def test_seeds():
    print("ran seed", asyncio.get_running_loop().seed)
"""


@pytest.mark.parametrize(
    ("arguments", "seeds"), [([], [0, 1, 2]), (["--virtual-seeds=5"], [0, 1, 2, 3, 4]), (["--virtual-seed=77"], [77])]
)
def test_seeds_come_from_the_marker_or_the_command_line(run_suite, arguments, seeds):
    result = run_suite(SAY_SEED, "-s", "-v", *arguments)
    result.assert_outcomes(passed=1)
    assert seeds_in(result) == seeds


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--virtual-seed=1", "--virtual-seeds=2"], "*pass --virtual-seed or --virtual-seeds, not*"),
        (["--virtual-seeds=0"], "*--virtual-seeds: 0: pass at least 1*"),
    ],
)
def test_bad_options_are_a_usage_error(run_suite, arguments, line):
    result = run_suite(SAY_SEED, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(line)


def test_failure_names_seed_time_trace_and_command_that_repeats_it(run_suite, pytester):
    result = run_suite(WITH_CLUSTER)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert 2 < 2*",
            "E * seed 2, 0.* s of virtual time, trace *; last events:",
            "E * 0.* orders-0*",
            "E * seed 2 failed, 2 before it passed; repeat it alone:",
            "E * PYTHONHASHSEED=0 pytest '*::test_orders?two words?' --virtual-seed=2",
        ]
    )
    assert "was not set" not in result.stdout.str()
    command = re.search(r"PYTHONHASHSEED=0 pytest (.*)", result.stdout.str())[1]
    again = subprocess.run(
        f"{sys.executable} -m pytest {command}",
        shell=True, cwd=pytester.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    (first,) = re.findall(r"E +(seed 2, .* trace .*;)", result.stdout.str())
    (second,) = re.findall(r"E +(seed 2, .* trace .*;)", again.stdout)
    assert first == second
    assert "seed 2 failed, 0 before it passed" in again.stdout
    assert "--virtual-seed=2" in again.stdout


HAND_OVER = """
import asyncio

@pytest.mark.virtual_time({})
async def test_hand_over():
    left = []

    async def put():
        for number in range(4):
            await asyncio.sleep(1)
            left.append(number)

    async def take():
        for _ in range(4):
            await asyncio.sleep(1)
            left.pop()

    await asyncio.gather(put(), take(), *[asyncio.sleep(1) for _ in range(9)])
"""


def test_order_that_a_failure_needs_is_found_and_repeats(run_suite):
    result = run_suite(HAND_OVER.format('seeds=30, order="seeded"'), "--virtual-shrink")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "* deviations from first in, first out -> 1 deviation, in * runs",
            "*.000  test_hand_over.<locals>.take-2 runs before *test_hand_over.<locals>.put-1*",
            "to run this alone, add this to the marker, and --virtual-seed=* to the command",
            'deviations="""',
        ]
    )
    text = result.stdout.str()
    assert "--virtual-shrink finds" not in text
    given = re.search(r"[0-9]+ order [0-9]+ [0-9]+", text)[0]
    seed = re.search(r"--virtual-seed=(\d+)", text)[1]
    again = run_suite(HAND_OVER.format(f"deviations={given!r}"), f"--virtual-seed={seed}")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines("*IndexError: pop from empty list")


def test_unpinned_hash_seed_is_reported_with_the_plugin(run_suite):
    source = """
    @pytest.mark.virtual_time
    async def test_fails():
        assert not "as it should"
    """
    source = "\n".join(line[4:] for line in source.splitlines())
    plugin = "broker_sim.testing.pytest_plugin"
    result = run_suite(source, "-p", plugin, conftest=None, hash_seed="random")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            f"*PYTHONHASHSEED=0 pytest -p {plugin} *::test_fails --virtual-seed=0",
            "*PYTHONHASHSEED was not set in this run*",
        ]
    )


def test_errors_of_the_run_itself_show_where_it_waits_and_not_the_loop(run_suite):
    result = run_suite("""
@pytest.mark.virtual_time
async def test_deadlock():
    await asyncio.Event().wait()

@pytest.mark.virtual_time(limit_s=10)
async def test_limit(kafka):
    await asyncio.Event().wait()

@pytest.mark.virtual_time
@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
async def test_raises_in_a_task_that_nobody_awaits():
    async def divide():
        1 / 0

    task = asyncio.create_task(divide())
    await asyncio.sleep(1)
""")
    result.assert_outcomes(failed=2, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*VirtualDeadlockError: nothing is ready and no timer runs*",
            "*test_errors_*(test_deadlock) > locks.py*",
            "*VirtualTimeLimitError: more than the allowed 10.0 s pass*",
            "*test_errors_*(test_limit) > locks.py*",
        ]
    )
    assert "_run_once" not in result.stdout.str()


def test_what_a_test_in_virtual_time_cannot_be_is_one_line(run_suite):
    result = run_suite("""
@pytest.mark.virtual_time(seed=3)
async def test_argument():
    pass

@pytest.mark.virtual_time(configs={"no.such": 1})
async def test_config():
    pass

@pytest.mark.virtual_time(topics=["orders:1:9"])
async def test_topic(kafka):
    pass

class TestCase(unittest.IsolatedAsyncioTestCase):
    @pytest.mark.virtual_time
    async def test_case(self):
        pass

@pytest.fixture(scope="module")
async def wide():
    pass

@pytest.mark.virtual_time
async def test_fixture(wide):
    pass

@pytest.fixture
async def narrow():
    pass

@pytest.mark.virtual_time
async def test_asks_late(request):
    request.getfixturevalue("narrow")
""")
    result.assert_outcomes(errors=5, failed=1)
    marker = "@pytest.mark.virtual_time"
    expected = [
        f"test_argument: {marker}: unknown argument 'seed' (did you mean seeds[?]); allowed: brokers, *",
        f"test_topic: {marker}: Unable to replicate the partition 9 time(s)*",
        f"test_config: {marker}: Unknown broker config name: no.such",
        f"test_case: {marker} does not work in a unittest.TestCase",
        "test_fixture: the async fixture 'wide' has scope module; in virtual time give it scope function",
        "the async fixture 'narrow' cannot be requested with getfixturevalue while *",
    ]
    for line in expected:
        result.stdout.fnmatch_lines([line])
    # The line and the summary, no traceback but that of the user's fixture.
    assert "options.py" not in result.stdout.str()
    assert "pytest_plugin.py" not in result.stdout.str()


def test_marked_tests_are_tests_as_all_others(run_suite, pytester):
    pytester.makepyfile(application="from time import monotonic\nfrom random import random")
    result = run_suite(
        """
import application

pytestmark = pytest.mark.virtual_time

class TestOrders:
    @pytest.mark.parametrize("number", [1, 2])
    async def test_method(self, kafka, tmp_path, number):
        assert (type(self) is TestOrders) and tmp_path.exists() and number in {1, 2}
        await kafka.create_topic("orders", replication_factor=3)
        leader = kafka.leader("orders")
        assert sorted({leader, *kafka.followers("orders")}) == [1, 2, 3]
        assert sorted(kafka.isr("orders")) == [1, 2, 3]
        assert kafka.high_watermark("orders") == 0

@pytest.mark.virtual_time(brokers=1, configs={"num.partitions": 4})
async def test_closest_marker_counts(kafka):
    topic = await kafka.create_topic("orders")
    assert len(topic.partitions) == 4
    assert "," not in kafka.bootstrap_servers

@pytest.fixture
def kafka_of_mine():
    return "mine"

async def test_application_imported_after_the_plugin_has_virtual_time(kafka_of_mine):
    start = application.monotonic()
    await asyncio.sleep(3_600)
    assert application.monotonic() - start == 3_600
    assert kafka_of_mine == "mine"

async def test_skips():
    pytest.skip("because of this")

""",
        "-rs",
    )
    result.assert_outcomes(passed=4, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * because of this"])
    assert "last events" not in result.stdout.str()


def test_users_own_fixture_called_kafka_comes_first_and_others_are_in_real_time(run_suite):
    result = run_suite("""
@pytest.fixture
def kafka():
    return "mine"

@pytest.mark.virtual_time
async def test_mine(kafka):
    assert kafka == "mine"

def test_real():
    assert abs(datetime.datetime.now().timestamp() - time.time()) < 60
    start = time.monotonic()
    time.sleep(0.01)
    assert time.monotonic() > start
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
""")
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("broker_sim", ["pytest", "_pytest", "broker_sim.testing"]),
        ("broker_sim.cluster.virtual.simulated_cluster", ["pytest", "_pytest", "broker_sim.testing"]),
        ("broker_sim.testing.pytest_plugin", ["broker_sim.cluster", "broker_sim.config"]),
        ("broker_sim.cli.ctl", ["asyncio", "broker_sim.broker", "broker_sim.config"]),
    ],
)
def test_unused_features_import_nothing(module, unwanted):
    program = f"import sys, {module}\nprint([name for name in {unwanted} if name in sys.modules])"
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, text=True).strip() == "[]"


def run_of_page(pytester, name):
    """Return the run that a file of the directory `pages` plays."""
    return runs_of_html((pytester.path / "pages" / f"{name}.html").read_text("utf-8"))[0]


def test_failing_seed_is_written_as_a_page_that_opens_at_its_failure(run_suite, pytester):
    result = run_suite(WITH_CLUSTER, "--kafka-page", "pages")
    result.assert_outcomes(failed=1)
    [file] = (pytester.path / "pages").iterdir()
    result.stdout.fnmatch_lines([f"the run plays in a browser: pages/{file.name} (*.* MB)"])
    run = run_of_page(pytester, file.stem)
    assert "seed 2" in run.title
    assert "assert 2 < 2" in run.failure
    assert {one.api for one in run.requests} >= {"Produce", "Metadata"}
    assert {"broker/1", "partition/orders/0"} <= {name for frame in run.frames for name in frame["set"]}
    assert max(one.at_ms for one in run.requests) <= run.end_ms


def test_failing_test_without_async_is_written_as_a_page(run_suite, pytester):
    source = """
@pytest.mark.virtual_time
def test_records(kafka):
    kafka.create_topic("orders", 1, 3)
    kafka.produce("orders", "an order")
    time.sleep(3)
    assert kafka.records("orders") == ()

@pytest.mark.virtual_time
async def test_nothing():
    raise ValueError("no cluster")
"""
    result = run_suite(source, "--kafka-page", "pages")
    result.assert_outcomes(failed=2)
    [file] = (pytester.path / "pages").iterdir()
    run = run_of_page(pytester, file.stem)
    assert "TopicRecord" in run.failure
    assert run.end_ms >= 3_000
    assert any("partition/orders/0" in frame["set"] for frame in run.frames)
    result.stdout.fnmatch_lines(["no page: the test does not use the fixture kafka*"])


def test_tests_that_pass_or_are_expected_to_fail_write_no_page(run_suite, pytester):
    source = """
@pytest.mark.virtual_time
async def test_passes(kafka): pass

@pytest.mark.xfail(strict=True)
@pytest.mark.virtual_time
async def test_is_expected_to_fail(kafka):
    raise ValueError("as expected")
"""
    run_suite(source, "--kafka-page", "pages").assert_outcomes(passed=1, xfailed=1)
    assert not (pytester.path / "pages").exists()

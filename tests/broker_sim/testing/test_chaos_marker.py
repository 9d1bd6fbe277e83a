"""The marker `chaos`: seeds, the smallest failure and its report, wrong arguments."""

import json
import zlib
from base64 import urlsafe_b64decode

import pytest

pytest_plugins = ["pytester"]

WORKER = """
    import asyncio
    import pytest

    async def work(left, done):
        while left:
            number = left.pop()
            await asyncio.sleep(0.5)
            done.append(number)
"""
FORGETS = """
    async def test_work_is_done(chaos):
        left, done = list(range(20)), []
        chaos.start(lambda: work(left, done), count=2)
        await chaos.faults_over()
        await chaos.eventually(lambda: len(done) == 20, "nothing is forgotten", within_s=20)
"""


@pytest.fixture
def run_tests(pytester, monkeypatch):
    """Run tests of a text in another process, as a user does; returns the result."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they are slow to import
    pytester.makeconftest('pytest_plugins = ["broker_sim.testing.pytest_plugin"]')

    def run(text, *arguments):
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess("-q", *arguments)

    return run


def test_failure_is_shrunk_and_shown_once_with_the_marker_to_repeat_it(run_tests):
    marker = '@pytest.mark.chaos(seeds=10, faults={"crash": 1, "pause": 3}, repair_aiokafka=True)'
    result = run_tests(f"{WORKER}\n    {marker}{FORGETS}")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("nothing is forgotten: not within 20 s") >= 1
    assert "raise InvariantError(" not in text, "the traceback ends at the line of the test"
    result.stdout.fnmatch_lines(
        [
            "seed *: nothing is forgotten",
            "* faults -> 1; * passed before, * runs to shrink it",
            "* s of virtual time, trace *, repeats",
            "aiokafka is repaired for this run: *",
            "* FAULT*crash worker-*",
            "to run this alone, mark the test with",
            '@pytest.mark.chaos(repair_aiokafka=True, schedule="""',
            "    seed=* brokers=3 workers=2 latency_ms=0 duration_ms=*",
            "    *000 crash worker-* for=100",
        ]
    )
    lines = text.splitlines()
    begin = lines.index('@pytest.mark.chaos(repair_aiokafka=True, schedule="""')
    printed = "\n".join(f"    {line}" for line in lines[begin : begin + 4])
    again = run_tests(f"{WORKER}\n{printed}{FORGETS}")
    again.assert_outcomes(failed=1)
    assert next(line for line in lines if "trace" in line) in again.stdout.str()


PRINTS = """
    import logging

    @pytest.fixture
    def shop():
        print("the fixture prints")

    @pytest.mark.chaos(schedule='''
        seed=1 duration_ms=5000
        2000 crash worker-1 for=2000
        3000 pause broker-1 for=500
    ''')
    async def test_print(chaos, shop):
        left, done = list(range(8)), []
        print("the test prints")
        logging.warning("the test logs")
        chaos.start(lambda: work(left, done), count=2)
        await chaos.faults_over()
        assert len(done) == 8
"""


SOMETIMES = """
    @pytest.mark.chaos(seeds=3, brokers=1, workers=1, duration_s=4, faults={"crash"})
    async def test_work_is_done(chaos):
        left, done = list(range(4)), []

        async def main():
            await work(left, done)
            if len(done) > 4:
                chaos.reached("more than there was")

        chaos.start(main)
        chaos.sometimes(lambda: chaos.workers[0].process is None, "a worker is down")
        await chaos.faults_over()
"""


def test_search_fails_for_what_no_seed_has_seen_and_a_single_seed_does_not(run_tests):
    result = run_tests(WORKER + SOMETIMES)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["the seeds passed, but the search fails: never seen in 3 seeds: 'more than there was'; run more seeds, *"]
    )
    run_tests(WORKER + SOMETIMES, "--virtual-seed=1").assert_outcomes(passed=1)


def test_search_without_effect_fails_with_the_remedy(run_tests):
    result = run_tests(WORKER + SOMETIMES.replace("await chaos.faults_over()", "await asyncio.sleep(1)"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no fault took effect in 3 seeds, 0 of * happened; await chaos.faults_over() *"])


def test_summary_has_the_number_of_seeds_that_saw_it(run_tests):
    result = run_tests(WORKER + SOMETIMES.replace("len(done) > 4", "True"))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_work_is_done: faults that took effect / happened / were drawn: */*/* (crash */*/*)",
            "*::test_work_is_done: seen: 'more than there was' in * of 3 seeds, 'a worker is down' in 3 of 3 seeds",
        ]
    )


def test_only_the_output_and_log_of_the_last_run_are_shown(run_tests):
    result = run_tests(WORKER + PRINTS)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "2 faults -> 1; " in text
    captured = text[text.index("- Captured") : text.index("- chaos -")]
    shown = ["the fixture prints", "the test prints", "the test logs"]
    assert [captured.count(line) for line in shown] == [1, 1, 1]
    assert captured.count("- Captured") == 3


def test_orders_are_explored_counted_and_reported(run_tests):
    result = run_tests(
        """
        import asyncio
        import pytest

        @pytest.mark.parametrize("trusts", [True, False])
        @pytest.mark.chaos(exhaustive=True, max_runs=50)
        async def test_hand_over(chaos, trusts):
            left = []

            async def put():
                left.append(1)

            async def take():
                if left or trusts:
                    left.pop()

            chaos.start(put)
            chaos.start(take)
            await asyncio.sleep(1)

        @pytest.mark.chaos(exhaustive="brokers")
        async def test_heartbeats(chaos):
            await asyncio.sleep(0.6)

        @pytest.mark.chaos(exhaustive=True, max_runs=2)
        async def test_bound(chaos):
            async def work():
                await asyncio.sleep(0)

            chaos.start(work, count=3)
            await asyncio.sleep(1)
        """
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "seed 0: IndexError",
            "1 deviation from first in, first out -> 1 deviation; 2 orders explored, the last one fails, * runs *",
            "* s of virtual time, trace *, repeats",
            "*ORDER*worker-2 runs before worker-1",
            '@pytest.mark.chaos(schedule="""',
            "    0 order * 1",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "*::test_hand_over?False?: 2 orders explored, all",
            "*::test_heartbeats: 6 orders explored, all",
            "*::test_bound: stopped after 2 orders: there are more; all with at most 0 changes *",
        ]
    )


def test_each_seed_has_fixtures_of_its_own_on_its_loop(run_tests):
    result = run_tests(
        """
        import asyncio
        import pytest

        loops = []

        @pytest.fixture
        async def shop(chaos):
            await chaos.kafka.create_topic("orders", partitions=1, replication_factor=3)
            loops.append(asyncio.get_running_loop())
            return []

        @pytest.mark.chaos(seeds=3, duration_s=2, workers=1, faults={"crash"}, topics=["other:1:3"])
        async def test_shop(chaos, shop, kafka):
            assert kafka is chaos.kafka
            shop.append(1)
            assert len(shop) == 1
            assert loops[-1] is asyncio.get_running_loop()
            assert kafka.leader("other", 0)
            chaos.start(lambda: asyncio.sleep(9))
            await chaos.faults_over()

        def test_afterwards():
            assert len(set(loops)) == 3
        """
    )
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(("arguments", "seeds"), [(["--virtual-seed=7"], "[7]"), (["--virtual-seeds=2"], "[0, 1]")])
def test_command_line_chooses_the_seeds(run_tests, arguments, seeds):
    result = run_tests(
        f"""
        import asyncio
        import pytest

        seen = []

        @pytest.mark.chaos(seeds=1, duration_s=1, workers=1, faults={{"crash"}})
        async def test_seed(chaos):
            seen.append(chaos.schedule.seed)
            chaos.start(lambda: asyncio.sleep(9))
            await chaos.faults_over()

        def test_seen():
            assert seen == {seeds}
        """,
        *arguments,
    )
    result.assert_outcomes(passed=2)


def test_error_of_a_worker_fails_the_test_and_a_skip_skips_it(run_tests):
    result = run_tests(
        """
        import asyncio
        import pytest

        async def worker():
            raise ValueError("a bug")

        @pytest.mark.chaos(seeds=2, duration_s=1)
        async def test_bug(chaos):
            chaos.start(worker)
            await chaos.faults_over()

        @pytest.mark.chaos(seeds=2)
        async def test_skip(chaos):
            pytest.skip("not here")
        """
    )
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*ValueError: a bug*", "seed 0: ValueError", "* faults -> 0 (it fails without any); 0 passed before*"]
    )


def test_wrong_use_and_a_cluster_that_cannot_be_made_are_errors_of_one_line(run_tests):
    result = run_tests(
        """
        import pytest

        @pytest.mark.chaos(seeds=0)
        async def test_a(chaos): ...

        @pytest.mark.chaos(faults={"explode"})
        async def test_b(chaos): ...

        @pytest.mark.chaos(latency_ms=(0, 5))
        async def test_i(chaos): ...

        @pytest.mark.chaos(exhaustive=True, faults={"crash"})
        async def test_j(chaos): ...

        @pytest.mark.chaos(exhaustive="all")
        async def test_m(chaos): ...

        @pytest.mark.chaos(exhaustive=True, max_runs=0)
        async def test_k(chaos): ...

        @pytest.mark.chaos(length=3)
        async def test_d(chaos): ...

        @pytest.mark.chaos
        async def test_f(): ...

        def test_g(chaos): ...

        @pytest.mark.chaos(schedule="seed=1\\ncrash worker-1")
        async def test_h(chaos): ...

        @pytest.mark.chaos(topics=["orders:1:9"])
        async def test_l(chaos): ...
        """
    )
    result.assert_outcomes(errors=11)
    result.stdout.fnmatch_lines(
        [
            "*seeds=0: pass a whole number of at least 1",
            "*unknown fault 'explode'*",
            "*latency_ms=(0, 5): pass the maximum in whole milliseconds",
            "*exhaustive=True excludes faults and order; pass a schedule instead",
            "*exhaustive='all': choose True, 'workers' or 'brokers'",
            "*max_runs=0: pass a whole number of at least 1",
            "*unknown argument 'length'; allowed: *",
            "*add the argument chaos, which starts the workers",
            "*mark it with @pytest.mark.chaos to use the fixture chaos",
            "*an action has the form '3200 crash worker-1 for=3000', in ms",
            "test_l: @pytest.mark.chaos: Unable to replicate the partition 9 time(s)*",
        ]
    )


def test_failing_run_is_written_as_a_page_and_the_report_names_it(run_tests, pytester):
    marker = '@pytest.mark.chaos(seeds=10, faults={"crash": 1})'
    result = run_tests(f"{WORKER}\n    {marker}{FORGETS}", "--kafka-page", "pages")
    result.assert_outcomes(failed=1)
    [file] = (pytester.path / "pages").iterdir()
    result.stdout.fnmatch_lines([f"the run plays in a browser: pages/{file.name} (*.* MB)"])
    assert "test_work_is_done" in file.name
    assert file.read_text("utf-8").startswith("<!doctype html>")


def test_report_has_a_link_to_the_playground_or_the_reason_why_not(run_tests):
    marker = '@pytest.mark.chaos(seeds=10, faults={"crash": 1})'
    with_fixture = FORGETS.replace("test_work_is_done(chaos)", "test_with_a_fixture(chaos, tmp_path)")
    program = f"{WORKER}\n    {marker}{FORGETS}\n    {marker}{with_fixture}"
    result = run_tests(program, "--kafka-link", "http://localhost/play/")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "open it in a browser: http://localhost/play/#chaos=*",
            "no link: test_with_a_fixture takes tmp_path; a link needs a function of chaos alone",
        ]
    )
    [link] = [line for line in result.outlines if line.startswith("open it")]
    packed = link.partition("#chaos=")[2]
    state = json.loads(zlib.decompress(urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), wbits=-zlib.MAX_WBITS))
    assert state["test"] == "test_work_is_done"
    assert f"seed {state['seed']}: nothing is forgotten" in result.outlines
    [text] = state["files"].values()
    assert "def test_work_is_done" in text

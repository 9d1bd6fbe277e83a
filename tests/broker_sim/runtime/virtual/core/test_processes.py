"""Programs in one loop that are killed and frozen apart from each other."""

import asyncio
import contextlib
import time
from datetime import UTC, datetime

import pytest

from broker_sim.runtime.virtual import run


def play(main, **options):
    return run(main, **options)


async def note_each_second(seen, name="worker"):
    try:
        while True:
            await asyncio.sleep(1)
            seen.append((name, asyncio.get_running_loop().time()))
    finally:
        seen.append((name, "finally"))


def test_killed_process_runs_nothing_any_more_and_the_others_go_on():
    async def main(loop):
        seen = []
        one, two = loop.process("one"), loop.process("two")
        one.start(note_each_second(seen, "one"))
        two.start(note_each_second(seen, "two"))
        await asyncio.sleep(1.5)
        one.kill()
        await asyncio.sleep(2)
        two.kill()
        await asyncio.sleep(2)
        assert seen == [("one", 1), ("two", 1), ("two", 2), ("two", 3)]
        return seen

    play(main)


def test_result_that_a_killed_process_waits_for_is_dropped():
    async def main(loop):
        seen = []
        queue = asyncio.Queue()

        async def take():
            seen.append(await queue.get())

        process = loop.process("worker")
        process.start(take())
        await asyncio.sleep(0)
        process.kill()
        queue.put_nowait("too late")
        await asyncio.sleep(1)
        assert seen == []

    play(main)


def test_finalizers_of_a_killed_process_do_not_act_on_the_run():
    seen = []

    async def numbers():
        try:
            while True:
                yield 1
                await asyncio.sleep(1)
        finally:
            seen.append("generator closed")

    async def use():
        try:
            async for _ in numbers():
                pass
        finally:
            await asyncio.sleep(1)
            seen.append("use ends")

    async def main(loop):
        process = loop.process("worker")
        process.start(use())
        await asyncio.sleep(2.5)
        process.kill()
        del process
        await asyncio.sleep(5)
        assert seen == []

    play(main, collect_every=1)
    assert "use ends" not in seen


def test_finalizers_of_a_killed_process_get_its_closed_loop_and_no_new_one():
    loops = []

    async def wait():
        try:
            await asyncio.sleep(10)
        finally:
            loops.append(asyncio.get_event_loop())

    async def main(loop):
        process = loop.process("worker")
        process.start(wait())
        await asyncio.sleep(0)
        process.kill()
        return loop

    loop = play(main)
    assert loops == [loop]


def test_errors_of_a_killed_process_are_nobodys():
    async def main(loop):
        async def fail():
            raise ValueError

        process = loop.process("worker")
        failed = process.start(fail())
        await asyncio.sleep(1)
        process.kill()
        del failed

    play(main, collect_every=1)


def test_task_that_kills_its_own_process_runs_to_its_next_await():
    async def main(loop):
        seen = []

        async def die():
            process.kill()
            seen.append("dying")
            await asyncio.sleep(0)
            seen.append("alive")

        process = loop.process("worker")
        process.start(die())
        await asyncio.sleep(1)
        assert seen == ["dying"]
        assert process.state == "dead"

    play(main)


def test_frozen_process_makes_up_for_what_was_due():
    async def main(loop):
        seen = []
        process = loop.process("worker")
        for delay in (3, 1, 2, 9):
            process.call(loop.call_later, delay, lambda at=delay: seen.append((at, loop.time())))
        process.start(note_each_second(seen))
        await asyncio.sleep(0.5)
        process.freeze()
        await asyncio.sleep(4)
        assert seen == []
        process.resume()
        await asyncio.sleep(1)
        assert seen == [(1, 4.5), (2, 4.5), (3, 4.5), ("worker", 4.5)]

    play(main)


def test_timer_that_is_cancelled_while_its_process_is_frozen_never_runs():
    async def main(loop):
        seen = []
        process = loop.process("worker")
        timer = process.call(loop.call_later, 1, seen.append, "timer")
        process.freeze()
        timer.cancel()
        process.resume()
        await asyncio.sleep(2)
        assert seen == []

    play(main)


def test_run_ends_though_a_process_is_frozen():
    seen = []

    async def main(loop):
        process = loop.process("worker")
        process.start(note_each_second(seen))
        await asyncio.sleep(1.5)
        process.freeze()

    play(main)
    assert seen[0] == ("worker", 1)


async def serve(answer=b"hello"):
    async def greet(reader, writer):
        await reader.readline()
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(greet, "shop", 80)
    await server.serve_forever()


@pytest.mark.parametrize("latency_ms", [0, 5])
def test_connections_of_a_killed_process_are_closed_by_its_host(latency_ms):
    async def main(loop):
        loop.network.latency_ms = latency_ms
        process = loop.process("shop")
        process.start(serve())
        await asyncio.sleep(1)
        reader, writer = await asyncio.open_connection("shop", 80)
        writer.write(b"half a line")
        await asyncio.sleep(1)
        process.kill()
        assert await reader.read() == b""
        writer.write(b"and more\n")
        await asyncio.sleep(1)
        writer.write(b"and more\n")
        with pytest.raises(BrokenPipeError):
            await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("shop", 80)

    play(main)


def test_data_that_a_killed_process_has_not_read_is_answered_with_a_reset():
    async def main(loop):
        process = loop.process("shop")
        process.start(serve())
        await asyncio.sleep(1)
        reader, writer = await asyncio.open_connection("shop", 80)
        await asyncio.sleep(1)
        process.freeze()
        writer.write(b"hello\n")
        await asyncio.sleep(1)
        process.kill()
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()

    play(main)


def test_process_of_the_same_name_starts_again_on_the_same_port():
    async def main(loop):
        first = loop.process("shop")
        first.start(serve(b"first"))
        await asyncio.sleep(1)
        with pytest.raises(ValueError, match="'shop' is alive"):
            loop.process("shop")
        first.kill()
        with pytest.raises(RuntimeError, match="create a new one"):
            first.start(asyncio.sleep(0))
        second = loop.process("shop")
        second.start(serve(b"second"))
        await asyncio.sleep(1)
        reader, writer = await asyncio.open_connection("shop", 80)
        writer.write(b"\n")
        assert await reader.read(100) == b"second"
        writer.close()

    play(main)


def test_host_of_a_frozen_server_takes_connections_and_data_for_it():
    async def main(loop):
        process = loop.process("shop")
        process.start(serve())
        await asyncio.sleep(1)
        process.freeze()
        reader, writer = await asyncio.open_connection("shop", 80)
        writer.write(b"are you there?\n")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(100), 10)
        process.resume()
        assert await reader.read(100) == b"hello"
        writer.close()

    play(main)


def test_one_of_two_processes_is_cut_off():
    async def main(loop):
        async def ask():
            reader, writer = await asyncio.open_connection("shop", 80)
            writer.write(b"\n")
            answer = await reader.read(100)
            writer.close()
            return answer, loop.time()

        loop.process("shop").start(serve())
        one, two = loop.process("one", host="rack-7"), loop.process("two")
        await asyncio.sleep(1)
        loop.network.cut("shop", one.host)
        answers = [one.start(ask()), two.start(ask())]
        await asyncio.sleep(4)
        loop.network.mend("shop", one.host)
        assert await asyncio.gather(*answers) == [(b"hello", 5.0), (b"hello", 1.0)]

    play(main)


def test_each_process_has_a_wall_clock_of_its_own():
    async def main(loop):
        async def look():
            await asyncio.sleep(1)
            return time.time(), datetime.now(UTC).timestamp(), time.monotonic()

        fast, right = loop.process("fast"), loop.process("right")
        fast.step_clock(3_600)
        ahead, true = await asyncio.gather(fast.start(look()), right.start(look()))
        assert [one - other for one, other in zip(ahead, true, strict=True)] == [3_600, 3_600, 0]
        fast.step_clock(-3_601)
        assert fast.call(time.time) == right.call(time.time) - 1

    play(main)


@pytest.mark.parametrize("start", ["to_thread", "executor"])
def test_threads_of_a_process_stand_still_with_it(start):
    async def main(loop):
        seen = []

        def work():
            for _ in range(5):
                time.sleep(1)
                seen.append(loop.time())

        async def use():
            if start == "to_thread":
                await asyncio.to_thread(work)
            else:
                await loop.run_in_executor(None, work)

        process = loop.process("worker")
        process.start(use())
        await asyncio.sleep(1.5)
        process.freeze()
        await asyncio.sleep(5)
        assert seen == [1]
        process.resume()
        await asyncio.sleep(1.5)
        assert seen == [1, 6.5, 7.5]
        process.kill()
        await asyncio.sleep(5)
        assert seen == [1, 6.5, 7.5]

    play(main)


def test_only_what_runs_is_frozen_and_only_what_is_frozen_goes_on():
    async def main(loop):
        process = loop.process("worker")
        with pytest.raises(RuntimeError, match="it is not frozen"):
            process.resume()
        process.freeze()
        with pytest.raises(RuntimeError, match="it is not running"):
            process.freeze()
        process.kill()
        process.kill()
        with pytest.raises(RuntimeError, match="it is not frozen"):
            process.resume()

    play(main)


@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_faults_of_processes_repeat(order):
    def digest():
        async def main(loop):
            seen = []
            for number in range(3):
                loop.process(f"worker-{number}").start(note_each_second(seen, number))
            loop.process("shop").start(serve())
            await asyncio.sleep(1.2)
            for process in list(loop.processes)[:2]:
                process.freeze()
            await asyncio.sleep(1.2)
            loop.process("asker").start(asyncio.open_connection("shop", 80))
            await asyncio.sleep(0)
            for process in list(loop.processes)[1:]:
                process.kill()
            next(iter(loop.processes)).resume()
            await asyncio.sleep(3)
            return loop.trace.digest(), seen

        return play(main, order=order, seed=7, trace_steps=True)

    assert digest() == digest()


def test_cut_breaks_a_transfer_in_the_middle():
    def arrived(seed):
        async def main(loop):
            loop.network.latency_ms = 10
            loop.process("shop").start(serve(bytes(1_000)))
            await asyncio.sleep(1)
            reader, writer = await asyncio.open_connection("shop", 80)
            writer.write(b"\n")
            await asyncio.sleep(0.015)
            loop.network.cut("shop", "client")
            await asyncio.sleep(1)
            before = len(reader._buffer)
            loop.network.mend("shop", "client")
            assert len(await reader.readexactly(1_000)) == 1_000
            writer.close()
            return before

        return play(main, seed=seed)

    sizes = {arrived(seed) for seed in range(12)}
    assert sizes - {0, 1_000}


def test_two_cuts_that_overlap_leave_the_bytes_in_order():
    sent = bytes(range(256)) * 4

    def received(seed):
        async def main(loop):
            loop.network.latency_ms = 10
            loop.process("shop").start(serve(sent))
            await asyncio.sleep(1)
            reader, writer = await asyncio.open_connection("shop", 80)
            writer.write(b"\n")
            await asyncio.sleep(0.015)
            loop.network.cut("shop", "client")
            loop.network.cut("shop", "*")
            await asyncio.sleep(1)
            loop.network.mend("shop", "client")
            loop.network.mend("shop", "*")
            data = await reader.readexactly(len(sent))
            writer.close()
            return data

        return play(main, seed=seed)

    for seed in range(12):
        assert received(seed) == sent, f"seed {seed}"

"""Latency and faults on the virtual network, all in virtual time."""

from __future__ import annotations

import asyncio
import errno

import pytest

from broker_sim.runtime.virtual import ANY, VirtualEventLoop

from .echo import SERVER, Client, connect

SERVER_NAME = "127.0.0.1:9092"

# -- latency ------------------------------------------------------------------------------------


def test_connecting_takes_a_round_trip_and_so_does_an_answer(run):
    async def main():
        loop = asyncio.get_running_loop()
        loop.network.latency_ms = 10
        client = await connect()
        assert loop.time() == 0.02
        client.transport.write(b"x")
        await asyncio.sleep(1)
        return client.received

    assert run(main) == [(0.04, b"x")]


def test_range_of_latency_is_drawn_by_seed_and_keeps_the_order(run):
    def times(seed):
        async def main():
            asyncio.get_running_loop().network.latency_ms = (1, 50)
            client = await connect()
            for number in range(50):
                client.transport.write(b"%02d" % number)
                await asyncio.sleep(0.005)
            await asyncio.sleep(1)
            assert client.data == b"".join(b"%02d" % number for number in range(50))
            return [when for when, _ in client.received]

        return run(main, seed=seed)

    assert times(1) == times(1) != times(2)


def test_latency_may_differ_between_directions(run):
    async def main():
        network = asyncio.get_running_loop().network
        labels = set()

        def latency_ms(source, target):
            labels.add((source, target))
            return 30 if source == "client" else 1

        network.latency_ms = latency_ms
        client = await connect()
        client.transport.write(b"x")
        await asyncio.sleep(1)
        network.latency_ms = 0
        network.set_latency(SERVER_NAME, ANY, 7)
        client.transport.write(b"y")
        await asyncio.sleep(1)
        network.set_latency(SERVER_NAME, ANY, None)
        client.transport.write(b"z")
        await asyncio.sleep(1)
        return labels, [round(when % 1, 6) for when, _ in client.received]

    labels = {("client", SERVER_NAME), (SERVER_NAME, "client")}
    assert run(main) == (labels, [0.062, 0.038, 0.031])


def test_segment_with_less_latency_waits_for_the_one_before_it(run):
    async def main():
        network = asyncio.get_running_loop().network
        client = await connect()
        latencies = iter([100, 1, 0, 0])
        network.latency_ms = lambda _source, _target: next(latencies)
        client.transport.write(b"slow")
        client.transport.write(b"fast")
        await asyncio.sleep(1)
        return client.received

    assert run(main) == [(0.1, b"slow"), (0.1, b"fast")]


def test_segments_that_wait_are_not_overtaken_when_latency_falls(run):
    async def main():
        network = asyncio.get_running_loop().network
        client = await connect()
        network.latency_ms = 100
        client.transport.write(b"slow")
        network.latency_ms = 0
        client.transport.write(b"fast")
        await asyncio.sleep(1)
        return client.received

    assert run(main) == [(0.1, b"slow"), (0.1, b"fast")]


@pytest.mark.parametrize("latency_ms", [-1, (5, 1), (-2, 3)])
def test_latency_that_goes_back_in_time_is_refused(latency_ms):
    with pytest.raises(ValueError, match="lower bound first"):
        VirtualEventLoop().network.latency_ms = latency_ms


# -- faults -------------------------------------------------------------------------------------


def test_cut_holds_bytes_back_in_its_direction_until_it_is_mended(run):
    async def main():
        network = asyncio.get_running_loop().network
        client = await connect()
        network.cut(SERVER_NAME, "client")
        client.transport.write(b"one")
        await asyncio.sleep(60)
        client.transport.write(b"two")
        await asyncio.sleep(60)
        assert client.received == []
        network.mend(SERVER_NAME, "client")
        await asyncio.sleep(1)
        return client.received

    assert run(main) == [(120, b"one"), (120, b"two")]


def test_cut_of_any_end_reaches_all_connections_of_the_other(run):
    async def main():
        network = asyncio.get_running_loop().network
        here, there = await connect(), await connect(address=("127.0.0.1", 9093))
        network.cut(ANY, SERVER_NAME)
        for client in (here, there):
            client.transport.write(b"x")
        await asyncio.sleep(1)
        return here.data, there.data

    assert run(main) == (b"", b"x")


def test_new_connection_over_a_cut_times_out_after_127_s(run):
    async def main():
        loop = asyncio.get_running_loop()
        await connect()
        loop.network.cut("client", SERVER_NAME)
        with pytest.raises(TimeoutError) as timed_out:
            await loop.create_connection(Client, *SERVER)
        assert timed_out.value.errno == errno.ETIMEDOUT
        return loop.time()

    assert run(main) == 127


def test_connection_with_unacknowledged_data_is_given_up_after_15_minutes(run):
    async def main():
        loop = asyncio.get_running_loop()
        client = await connect()
        loop.network.cut("client", ANY)
        client.transport.write(b"x")
        error = await client.lost
        return loop.time(), type(error), error.errno

    assert run(main) == (924.6, TimeoutError, errno.ETIMEDOUT)


def test_mending_one_cut_gives_no_time_to_another(run):
    async def main():
        loop = asyncio.get_running_loop()
        client = await connect()
        loop.network.cut("client", ANY)
        loop.network.cut("nobody", ANY)
        client.transport.write(b"x")
        loop.call_later(500, loop.network.mend, "nobody", ANY)
        await client.lost
        return loop.time()

    assert run(main) == 924.6


def test_mended_in_time_the_connection_lives(run):
    async def main():
        network = asyncio.get_running_loop().network
        client = await connect()
        network.cut("client", ANY)
        client.transport.write(b"x")
        await asyncio.sleep(924)
        network.mend("client", ANY)
        await asyncio.sleep(3600)
        return client.data, client.lost.done()

    assert run(main) == (b"x", False)


def test_reset_breaks_off_both_ends(run):
    async def main():
        network = asyncio.get_running_loop().network
        servers = []
        client = await connect(make_server=lambda: servers.append(Client()) or servers[-1])
        assert network.reset("client", "127.0.0.1:1") == 0
        assert network.reset("client", SERVER_NAME) == 1
        errors = await asyncio.gather(client.lost, servers[0].lost)
        assert network.reset("client", SERVER_NAME) == 0
        return [type(error) for error in errors]

    assert run(main) == [ConnectionResetError, ConnectionResetError]


def test_fragments_cut_data_but_lose_nothing(run):
    async def main():
        asyncio.get_running_loop().network.fragments = True
        client = await connect()
        for _ in range(20):
            client.transport.write(b"0123456789")
        await asyncio.sleep(1)
        assert client.data == b"0123456789" * 20
        return [len(data) for _, data in client.received]

    sizes = run(main, seed=3)
    assert set(sizes) > {10}
    assert sizes == run(main, seed=3) != run(main, seed=4)


def test_window_makes_the_writer_wait_for_the_reader(run):
    class Reader(Client):
        def connection_made(self, transport):
            super().connection_made(transport)
            transport.pause_reading()

    async def main():
        loop = asyncio.get_running_loop()
        loop.network.window_bytes = 1_000
        loop.network.latency_ms = 10
        servers = []
        client = await connect(make_server=lambda: servers.append(Reader()) or servers[-1])
        client.transport.write(bytes(2_500))
        await asyncio.sleep(1)
        waiting = client.transport.get_write_buffer_size()
        servers[0].transport.resume_reading()
        await asyncio.sleep(1)
        return waiting, [(round(when - 1, 6), len(data)) for when, data in servers[0].received]

    # Each window takes a round trip: the reader's acknowledgement, then the data.
    assert run(main) == (1_500, [(0.02, 1_000), (0.04, 1_000), (0.06, 500)])

"""`broker-sim why` names the follower that kept acks=all waiting, from traces of clusters in virtual time."""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from broker_sim import VirtualCluster
from broker_sim.cli.why import command
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request


def why(path, *arguments):
    """Return what the command prints about a trace, line by line."""
    result = CliRunner().invoke(command, [str(path), *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


class Traced(NamedTuple):
    """A trace, and who led and followed the partition in it."""

    path: Path
    leader: int
    followers: tuple[int, ...]


@pytest.fixture
def traced(tmp_path):
    """Return a function that traces a cluster in virtual time on which a story is told."""

    def trace(story, name="trace.jsonl", **configs):
        configs = {key.replace("_", "."): value for key, value in configs.items()}
        with VirtualCluster(trace=tmp_path / name, configs=configs) as cluster:
            cluster.create_topic("orders", 1, 3)
            partition = Traced(tmp_path / name, cluster.leader("orders"), cluster.followers("orders"))
            send(cluster)
            story(cluster)
        return partition

    return trace


def send(cluster, wait_ms=100, timeout_ms=30_000):
    request = produce_request(("orders", 0), acks=-1, timeout_ms=timeout_ms)
    cluster.client().send(cluster.leader("orders"), request, PRODUCE_VERSION)
    cluster.advance(wait_ms)


def behind_a_slow_link(cluster):
    slow, _ = cluster.followers("orders")
    cluster.set_link(cluster.leader("orders"), slow, delay_ms=2_000)
    send(cluster, 5_000)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz", "trace.parquet"])
def test_follower_behind_a_slow_link_is_named(traced, name):
    path, leader, (slow, other) = traced(behind_a_slow_link, name)
    first, _, request, *rest, verdict = why(path)
    assert first.startswith("Of 2 finished acks=all requests the slowest waited 2")
    assert request.startswith(f"orders-0 on broker {leader}: completed after 2")
    waited_ms = int(request.split(" after ")[1].split()[0])
    assert rest == [
        f"  broker {number} sent no fetch for {waited_ms if number == slow else 0} ms of that"
        for number in sorted((slow, other))
    ]
    assert verdict == f"  It waited for broker {slow}: its link or disk is slow, or it hangs."


def test_request_that_timed_out_has_its_error(traced):
    def story(cluster):
        cluster.pause(cluster.followers("orders")[1])
        send(cluster, 3_000, timeout_ms=1_500)

    path, _, followers = traced(story)
    lines = why(path)
    assert ": expired with REQUEST_TIMED_OUT after 1500 ms, at " in lines[2]
    assert lines[-1].startswith(f"  It waited for broker {followers[1]}:")


def test_follower_that_left_the_isr_is_told(traced):
    def story(cluster):
        cluster.pause(cluster.followers("orders")[1])
        send(cluster, 8_000)

    path, _, followers = traced(story, replica_lag_time_max_ms=3_000)
    lines = why(path)
    assert ": completed after " in lines[2]
    cause = f"  It ended without broker {followers[1]}, which had left the ISR: see replica.lag.time.max.ms."
    assert lines[-1] == cause


def test_all_followers_silent_is_the_leader(traced):
    def story(cluster):
        for follower in cluster.followers("orders"):
            cluster.pause(follower)
        send(cluster, 3_000)
        for follower in cluster.followers("orders"):
            cluster.resume(follower)
        cluster.advance(1_000)

    assert why(traced(story).path)[-1].startswith("  All followers were silent: the leader was slow or paused")


def test_request_that_did_not_wait_was_slow_elsewhere(traced):
    lines = why(traced(lambda _: None).path)
    assert lines[0].startswith("Of 1 finished acks=all requests")
    assert lines[-1].startswith("  The brokers were not slow: ")


def test_as_many_requests_as_wanted_are_explained_the_slowest_first(traced):
    def story(cluster):
        paused = cluster.followers("orders")[0]
        for wait_ms in (300, 700, 500):
            cluster.pause(paused)
            send(cluster, wait_ms)
            cluster.resume(paused)
            cluster.advance(1_000)

    path = traced(story).path
    for count, waits in ((1, [700]), (2, [700, 500]), (9, [700, 500, 300])):
        requests = [line for line in why(path, "--count", count) if line.startswith("orders-0")]
        assert [int(line.split(" after ")[1].split()[0]) // 100 * 100 for line in requests] == waits


def test_trace_without_such_a_request_says_so(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert why(tmp_path / "empty.jsonl") == [
        f"{tmp_path / 'empty.jsonl'} has no finished acks=all request: send one while the trace is written"
    ]


def test_last_line_that_is_being_written_is_left_out(traced):
    path = traced(behind_a_slow_link).path
    whole = why(path)
    with path.open("a") as file:
        file.write('{"purgatory":"Produce","ts_ms":17')
    assert why(path) == whole


@pytest.mark.parametrize(
    ("text", "number"),
    [("no JSON\n", 1), ('{"purgatory":"Produce"}\n', 1), ("[]\n", 1), ('{event}\n{"purgatory":"Produce"\n', 2)],
)
def test_file_that_is_no_trace_is_refused_in_one_line(traced, tmp_path, text, number):
    event = traced(behind_a_slow_link).path.read_text().splitlines()[0]
    other = tmp_path / "other.jsonl.gz"
    other.write_bytes(gzip.compress(text.replace("{event}", event).encode()))
    result = CliRunner().invoke(command, [str(other)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: {other}, line {number} is not an event of a trace: pass a file written by --trace\n"
    )


def test_file_that_cannot_be_read_is_told_in_one_line(tmp_path):
    (tmp_path / "broken.jsonl.gz").write_text(json.dumps({}))
    result = CliRunner().invoke(command, [str(tmp_path / "broken.jsonl.gz")])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "Not a gzipped file" in result.stderr

"""`broker-sim ctl` against a cluster in this process."""

import json
import re
import socket
import sys

import pytest
from broker_sim_integration.clients.groups import find_coordinator
from broker_sim_integration.clients.raw_client import RawConnection

from broker_sim import Cluster
from broker_sim.cli import main
from broker_sim.cluster.status.cluster_status import LinkStatus
from broker_sim.cluster.verbs import Verbs
from broker_sim.control.verb import verbs_of
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, encode_request


@pytest.fixture
def ctl(control_url, monkeypatch, capsys):
    """Return a function that runs `ctl`: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setenv("BROKER_SIM_CONTROL", control_url)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["broker-sim", "ctl", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


@pytest.mark.usefixtures("short_sessions")
def test_several_brokers_change_their_state_at_once(ctl, cluster):
    assert ctl("pause", "2", "3") == (0, "pause broker 2: paused\npause broker 3: paused\n", "")
    assert [broker.state for broker in cluster.status().brokers] == ["running", "paused", "paused"]
    assert ctl("resume", "2", "3")[0] == 0
    assert ctl("kill", "1") == (0, "kill broker 1: dead\n", "")
    assert ctl("start", "1") == (0, "start broker 1: running\n", "")


def test_password_may_come_from_the_environment_and_is_in_no_answer(ctl, monkeypatch):
    monkeypatch.setenv("BROKER_SIM_PASSWORD", "pa55word")
    refused = (1, "", "broker-sim: unknown user 'billing'\n")
    assert ctl("set-password", "billing") == refused
    assert ctl("set-password", "billing", "pa55word") == refused
    monkeypatch.setenv("BROKER_SIM_PASSWORD", "")
    code, printed, error = ctl("set-password", "billing")
    assert (code, printed) == (2, "")
    assert "Missing argument 'PASSWORD'" in error


def test_refusal_of_the_cluster_is_one_line(ctl):
    assert ctl("resume", "1") == (1, "", "broker-sim: broker 1 is running, not paused\n")
    assert ctl("pause", "9") == (1, "", "broker-sim: unknown broker 9; brokers: 1, 2, 3\n")


def test_link_is_cut_slowed_and_healthy_again(ctl, cluster):
    assert ctl("set-link", "1", "2", "--drop")[1] == "the link from 1 to 2 is cut\n"
    assert cluster.status().links == (LinkStatus(1, 2, drop=True, delay_ms=0),)
    assert ctl("set-link", "1", "2", "--delay-ms", "5")[1] == "the link from 1 to 2 is slower by 5 ms\n"
    assert cluster.status().links == (LinkStatus(1, 2, drop=False, delay_ms=5),)
    assert ctl("set-link", "1", "2")[1] == "the link from 1 to 2 is healthy\n"
    assert cluster.status().links == ()


def test_broker_is_disconnected_and_reconnected(ctl, cluster):
    assert ctl("disconnect", "3")[0] == 0
    assert len(cluster.status().links) == 6
    assert ctl("reconnect", "3")[0] == 0
    assert cluster.status().links == ()


def test_metadata_is_late_until_it_is_not(ctl, cluster):
    assert ctl("delay-metadata", "--max-ms", "200")[0] == 0
    assert cluster.status().metadata_delay_ms == 200
    assert "new metadata is up to 200 ms late" in ctl("status")[1]
    assert ctl("delay-metadata")[0] == 0
    assert "new metadata" not in ctl("status")[1]


def test_clients_are_disconnected_and_reconnected(ctl, cluster):
    def cut_off():
        return [broker.id for broker in cluster.status().brokers if broker.clients_cut_off]

    assert ctl("disconnect-clients", "3")[0] == 0
    assert cut_off() == [3]
    assert "yes" in ctl("status")[1]
    assert ctl("reconnect-clients", "3")[0] == 0
    assert cut_off() == []


@pytest.mark.usefixtures("short_sessions")
def test_clients_of_a_dead_broker_cannot_be_disconnected_nor_stay_so_after_a_restart(ctl, cluster):
    assert ctl("disconnect-clients", "3")[0] == 0
    assert ctl("kill", "3")[0] == 0
    refused = "broker-sim: broker 3 is dead; no client is connected to it\n"
    assert ctl("disconnect-clients", "3") == (1, "", refused)
    assert ctl("start", "3")[0] == 0
    assert not cluster.status().broker(3).clients_cut_off


def test_faults_are_injected_and_healed(ctl):
    fault = ("inject", "Produce", "--error", "NOT_LEADER_OR_FOLLOWER", "--count", "2")
    assert ctl(*fault) == (0, "fault 1 hits PRODUCE\n", "")
    assert ctl("inject", "Fetch", "--delay-ms", "100", "--broker", "2")[0] == 0
    assert "NOT_LEADER_OR_FOLLOWER" in ctl("status")[1]
    assert ctl("heal", "1") == (0, "1 faults left\n", "")
    assert ctl("heal") == (0, "0 faults left\n", "")
    assert ctl("inject", "Produce")[0] == 1


def test_status_is_a_table_or_json(ctl):
    assert ctl("create-topic", "orders", "--partitions", "1", "--replication-factor", "3") == (
        0,
        "topic orders exists\n",
        "",
    )
    code, table, _ = ctl("status")
    assert code == 0
    assert "orders-0" in table
    code, text, _ = ctl("--json", "status")
    (topic,) = json.loads(text)["topics"]
    assert (code, topic["name"]) == (0, "orders")


def test_one_broker_and_one_partition_are_tables(ctl, cluster):
    cluster.create_topic("orders", 2, 3)
    assert "running" in ctl("broker", "2")[1]
    assert "orders-1" in ctl("partition", "orders", "1")[1]
    assert "orders-0" in ctl("partition", "orders")[1]


def test_groups_and_waits_are_tables(ctl, cluster):
    cluster.create_topic("orders", 1, 3)
    assert "orders-0" in ctl("wait-for-isr", "orders", "0", "--size", "3")[1]
    assert "coordinator" in ctl("groups")[1]
    assert ctl("group", "shop") == (
        1, "", "broker-sim: unknown group 'shop'; groups: none\n",
    )  # fmt: skip
    late = ctl("wait-for-group", "shop", "--timeout-s", "0.01")
    assert late[0] == 1
    assert "waited 0.01 s for group shop (state Stable); it does not exist" in late[2]


def test_rights_need_an_authorizer_and_denials_are_a_table(ctl):
    code, _, error = ctl("grant", "billing", "WRITE", "topic:orders")
    assert code == 1
    assert error.startswith("broker-sim: there is no authorizer")
    assert "denials" in ctl("denials")[1]


def test_kept_requests_are_a_table(ctl, cluster):
    code, _, error = ctl("requests")
    assert (code, "`broker-sim ctl keep-requests`" in error) == (1, True)
    assert ctl("keep-requests", "--count", "5")[1] == "keep-requests: done\n"
    with socket.create_connection(cluster.address(1)) as client:
        header = RequestHeader(18, 0, 1, "shop")
        client.sendall(b"".join(encode_request(header, messages.ApiVersionsRequest())))
        assert client.recv(1)
    printed = ctl("requests", "--api", "ApiVersions")[1]
    assert re.search(r"0 ms +shop +1 +ApiVersions +0 +\d ms", printed)
    assert "ApiVersions" not in ctl("requests", "--client-id", "other")[1]


def test_purgatory_shows_what_is_parked(ctl, parked_fetch):
    code, table, _ = ctl("purgatory")
    assert code == 0
    assert "DelayedFetch" in table
    assert parked_fetch in table
    purgatories = json.loads(ctl("--json", "purgatory")[1])["brokers"][0]["purgatories"]
    assert {"Produce", "Fetch"} <= {purgatory["name"] for purgatory in purgatories}


def test_missing_address_is_one_line_that_says_where_to_get_it(ctl, control_url, monkeypatch):
    assert ctl("--control", "", "status")[0] != 0
    code, _, error = ctl("--control", "nowhere", "status")
    assert (code, error) == (1, "broker-sim: 'nowhere' is not an address such as http://127.0.0.1:8080\n")


def test_unreachable_cluster_is_one_line(ctl):
    code, _, error = ctl("--control", "http://127.0.0.1:1", "status")
    assert code == 1
    assert error.count("\n") == 1
    assert "no cluster answers at http://127.0.0.1:1" in error


def test_topic_gets_its_configurations(ctl, cluster):
    configs = ("--config", "retention.ms=1000", "--config", "min.insync.replicas=2")
    assert ctl("create-topic", "parcels", *configs) == (0, "topic parcels exists\n", "")
    topic = cluster._cluster.nodes.controller.image.topics["parcels"]
    assert topic.configs == {"retention.ms": "1000", "min.insync.replicas": "2"}


def test_leadership_is_transferred_and_brokers_are_stopped_and_rolled(ctl):
    configs = {"broker.session.timeout.ms": 600, "broker.heartbeat.interval.ms": 200}
    with Cluster(3, configs=configs, control=True) as cluster:
        cluster.create_topic("orders", 1, 3)
        to = cluster.followers("orders")[0]

        def told(*words):
            return ctl("--control", cluster.control_url, *words)

        assert told("transfer-leadership", "orders", "0", str(to))[0] == 0
        assert cluster.leader("orders") == to
        assert told("stop", str(to)) == (0, f"stop broker {to}: dead\n", "")
        assert cluster.leader("orders") != to
        assert told("start", str(to)) == (0, f"start broker {to}: running\n", "")
        assert told("roll") == (0, "roll: done\n", "")
        assert sorted(cluster.isr("orders")) == [1, 2, 3]


def test_every_verb_is_a_subcommand_with_help(ctl):
    for name in verbs_of(Verbs):
        code, text, _ = ctl(name.replace("_", "-"), "--help")
        assert code == 0
        assert "Usage:" in text


def test_help_needs_no_cluster_and_other_commands_name_the_missing_address(ctl, monkeypatch, capsys):
    def without_cluster(*arguments):
        monkeypatch.delenv("BROKER_SIM_CONTROL", raising=False)
        monkeypatch.setattr(sys, "argv", ["broker-sim", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    assert without_cluster("ctl", "inject", "--help")[0] == 0
    for command in (("ctl", "status"), ("top",)):
        code, _, error = without_cluster(*command)
        assert (code, error.count("\n")) == (2, 1)
        assert "--control URL or set BROKER_SIM_CONTROL" in error


def test_topics_and_records(ctl):
    assert ctl("create-topic", "orders", "--partitions", "1")[0] == 0
    assert ctl("produce", "orders", "v", "--key", "k")[1] == "appended to orders-0 at offset 0\n"
    assert ctl("produce", "orders", "w")[1] == "appended to orders-0 at offset 1\n"
    assert ctl("records", "orders")[1] == "orders-0 0\tk\tv\norders-0 1\tnull\tw\n"
    assert ctl("wait-until-in-sync", "--timeout-s", "30.5") == (0, "wait-until-in-sync: done\n", "")
    assert ctl("delete-topic", "orders") == (0, "delete-topic: done\n", "")
    assert ctl("records", "orders")[0] == 1
    assert ctl("reset") == (0, "reset: done\n", "")


def test_many_records_come_from_a_file(ctl, cluster, tmp_path):
    cluster.create_topic("orders", 1, 1)
    path = tmp_path / "records.jsonl"
    path.write_text('{"value": "v", "headers": {"trace": "7"}}\n{"value": "w"}\n')
    assert ctl("produce-many", "orders", str(path))[:2] == (0, "orders got 2 records\n")
    assert [record.headers for record in cluster.records("orders")] == [(("trace", b"7"),), ()]
    assert ctl("produce", "orders", "v", "--header", "a=8", "--header", "a=9", "--timestamp-ms", "5")[0] == 0
    record = cluster.records("orders")[2]
    assert (record.headers, record.timestamp_ms) == ((("a", b"8"), ("a", b"9")), 5)
    path.write_text('{"value": "v"}\n{"value"\n')
    code, _, complaint = ctl("produce-many", "orders", str(path))
    assert (code, "line 2 is not JSON" in complaint) == (2, True)


def test_brokers_are_added_and_removed(ctl, cluster):
    code, text, _ = ctl("add-broker", "--config", "broker.rack=b")
    assert (code, text) == (0, f"broker 4 is at {cluster.status().broker(4).address}\n")
    assert ctl("remove-broker", "4") == (0, "broker 4 removed\n", "")
    assert [broker.id for broker in cluster.status().brokers] == [1, 2, 3]


def test_connections_of_clients_and_new_ports(ctl, cluster):
    with RawConnection(*cluster.address(1)) as client:
        find_coordinator(client, "billing")
        assert "broker-sim-compare" in ctl("clients")[1]
        code, text, _ = ctl("reset", "--new-ports")
        assert (code, text) == (0, f"reset: brokers are at {cluster.bootstrap_servers}\n")
    assert "broker-sim-compare" not in ctl("clients")[1]


def test_tombstone_is_produced_by_an_option(ctl, cluster):
    cluster.create_topic("orders", 1, 1)
    assert ctl("produce", "orders", "--null-value", "--key", "k")[0] == 0
    assert [(r.key, r.value) for r in cluster.records("orders")] == [(b"k", None)]
    for arguments in (("orders",), ("orders", "v", "--null-value")):
        code, _, complaint = ctl("produce", *arguments)
        assert code == 2
        assert "pass either VALUE or --null-value" in complaint


def test_status_begins_with_the_memory(ctl, cluster):
    assert ctl("status")[1].startswith("memory: 0 bytes of at most ")


def test_what_cannot_be_injected_is_one_line(ctl):
    for arguments in (("Vote", "--delay-ms", "1"), ("Produce", "--error", "NOTHING")):
        code, _, error = ctl("inject", *arguments)
        assert (code, error.count("\n")) == (1, 1)
    assert ctl("inject", "produce", "--error", "not_leader_or_follower")[0] == 0


def test_help_says_what_each_verb_does_without_cutting_it_short(ctl):
    code, printed, _ = ctl("--help")
    assert code == 0
    assert "Append one record as a producer with acks=all does." in " ".join(printed.split())
    assert "..." not in printed.partition("Commands:")[2]

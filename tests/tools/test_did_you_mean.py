"""A name that is nearly right: whatever list of ours it is meant to be in, the message names the nearest one."""

import json
import sys
import urllib.error
import urllib.request

import click
import pytest
from broker_sim_integration.cli import main as compare
from broker_sim_integration.pipeline.cli import main as pipeline
from broker_sim_integration.scenarios.catalogue import select

from broker_sim import Cluster, Fault, VirtualCluster
from broker_sim.chaos.faults.action import Action
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.weights import weights_of
from broker_sim.chaos.schedule import Schedule
from broker_sim.cli import _broker_sim as broker_sim
from broker_sim.cli.commands import one_line
from broker_sim.cluster.arguments import ClusterOptions
from broker_sim.errors import ApiError
from tools.playground import lesson_files

sys.path.insert(0, str(lesson_files.HERE))
import playground_lessons

sys.path.remove(str(lesson_files.HERE))


@pytest.fixture(scope="module")
def kafka():
    with Cluster(1, control=True) as cluster:
        yield cluster


def command_line(program, *words):
    """Return what a command line says of words that it does not take."""
    try:
        program.main(list(words), standalone_mode=False)
    except click.ClickException as error:
        return one_line(error)
    raise AssertionError(f"{words} are taken")


def answer(kafka, method, path, body=None):
    """Return the error of a request to the control port."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(kafka.control_url + path, data, headers, method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as error:
        return json.load(error)["error"]


def raises(call, *arguments, **named):
    """Return the text of the error that a call raises."""
    with pytest.raises((ApiError, LookupError, TypeError, ValueError)) as error:
        call(*arguments, **named)
    return str(error.value)


NAMES = {
    "configuration of brokers": ("min.insync.replicas", lambda _: raises(Cluster, configs={"min.insync.replica": 2})),
    "configuration of a topic": (
        "retention.ms",
        lambda kafka: raises(kafka.create_topic, "a", configs={"retention": 5}),
    ),
    "configuration of a group": (
        "consumer.session.timeout.ms",
        lambda kafka: raises(kafka.set_group_configs, "shop", {"consumer.session.timeout": 5}),
    ),
    "feature": ("metadata.version", lambda _: raises(Cluster, features={"metadata.versoin": 19})),
    "argument of a cluster": ("brokers", lambda _: raises(Cluster, borkers=2)),
    "argument of a virtual cluster": ("seed", lambda _: raises(VirtualCluster, sed=2)),
    "argument of a marker": ("topics", lambda _: raises(ClusterOptions.from_marker, (), {"topic": ["a"]})),
    "API": ("ListOffsets", lambda _: raises(Fault, api="list_ofsets", delay_ms=1)),
    "error": ("NOT_ENOUGH_REPLICAS", lambda _: raises(Fault, api="Produce", error="not_enough_replica")),
    "field of a fault": ("topic", lambda _: raises(Fault, api="Produce", topc="a")),
    "state of a group": ("Stable", lambda kafka: raises(kafka.wait_for_group, "shop", state="stabel")),
    "fault to draw": ("crash", lambda _: raises(weights_of, {"crush"})),
    "fault of a schedule": ("crash", lambda _: raises(check_action, Action(0, "crush", ("worker-1",)))),
    "option of a schedule": ("workers", lambda _: raises(Schedule.parse, "seed=1 workres=2")),
    "command": ("chaos", lambda _: command_line(broker_sim, "kaos")),
    "option": ("--config", lambda _: command_line(broker_sim, "run", "--confg", "a=b")),
    "verb in a terminal": ("pause", lambda _: command_line(broker_sim, "ctl", "pasue", "2")),
    "option of a verb": ("--error", lambda _: command_line(broker_sim, "ctl", "inject", "Produce", "--erorr", "x")),
    "verb over HTTP": ("POST /brokers/1/pause", lambda kafka: answer(kafka, "POST", "/brokers/1/pasue")),
    "method over HTTP": ("POST /brokers/1/pause", lambda kafka: answer(kafka, "GET", "/brokers/1/pause")),
    "field over HTTP": ("count", lambda kafka: answer(kafka, "POST", "/inject", {"api": "Produce", "cont": 1})),
    "command of the comparison": ("drift", lambda _: command_line(compare, "drfit")),
    "job of the pipeline": ("latency", lambda _: command_line(pipeline, "latencey")),
    "scenario": ("acks_1_is_answered_at_once", lambda _: raises(select, ["acks_1_is_answered_at_onec"])),
    "lesson": ("acks", lambda _: raises(playground_lessons.play_named, "akcs")),
}
"""What is named: the name that is meant, and what says so of one that is nearly it."""


@pytest.mark.parametrize(("name", "said"), NAMES.values(), ids=NAMES)
def test_message_names_the_nearest(kafka, name, said):
    assert f"(did you mean {name}?)" in said(kafka)

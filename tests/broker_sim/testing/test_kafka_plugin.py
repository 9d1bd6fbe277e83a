"""The fixtures `kafka` and `kafka_cluster`, as a user's suite has them without a conftest.py."""

import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from broker_sim import ApiError, Cluster
from broker_sim.metadata import GROUP_RESOURCE
from broker_sim.network.one_request import ask
from broker_sim.protocol import messages
from broker_sim.testing import kafka_plugin
from broker_sim.testing.real_kafka import RealKafka

pytest_plugins = ["pytester"]

PLUGIN = kafka_plugin.__name__
OWN = 8
"""The source of a configuration that is set on a group."""


def test_plugin_is_installed_under_the_name_of_its_module():
    (found,) = (entry for entry in entry_points(group="pytest11") if entry.value == PLUGIN)
    assert found.name == PLUGIN
    assert found.load() is kafka_plugin


def test_plugin_imports_nothing_of_the_simulator():
    code = f"import sys, pytest, {PLUGIN}; print(*(name for name in sys.modules if 'broker_sim.' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["broker_sim.testing", PLUGIN]


SHARED = """
seen = []

@pytest.mark.kafka(topics=["orders:2:3", "bills"])
def test_first(kafka):
    assert len(kafka.status().topics) == 2
    assert len(kafka.isr("orders", 1)) == 3
    kafka.create_topic("more")
    kafka.kill(3)
    seen.append((kafka, kafka.bootstrap_servers))

def test_second(kafka):
    assert kafka is seen[0][0]
    assert kafka.bootstrap_servers != seen[0][1]  # which clients of the first test know
    assert kafka.status().topics == ()
    assert kafka.broker(3).state == "running"

@pytest.mark.kafka(brokers=1, configs={"num.partitions": 4})
class TestOther:
    def test_third(self, kafka):
        assert kafka is not seen[0][0]
        assert len(kafka.create_topic("orders").partitions) == 4
        seen.append(kafka)

    def test_fourth(self, kafka):
        assert kafka is seen[1]
        assert kafka.status().topics == ()
"""


def test_tests_share_a_cluster_and_leave_nothing_in_it(run_here):
    run_here(SHARED).assert_outcomes(passed=4)


FAILING = """
from broker_sim import WrongStateError

@pytest.mark.kafka(topics=["orders:1:3"])
def test_wait(kafka):
    kafka.pause(kafka.followers("orders")[0])
    kafka.wait_until(lambda: kafka.high_watermark("orders") == 3, timeout_s=0.01)

@pytest.mark.kafka(topics=["orders:1:3"])
def test_assertion(kafka):
    kafka.produce("orders", "x")
    assert kafka.high_watermark("orders") == 2

def test_verb(kafka):
    kafka.pause(9)

def test_defect(kafka):
    kafka.wait_until(lambda: kafka.unknown)

def test_closed(kafka_cluster):
    kafka_cluster.close()
    kafka_cluster.leader("orders")

@pytest.mark.kafka(brokers=1)
def test_expected(kafka):
    with pytest.raises(WrongStateError):
        kafka.resume(1)
"""


def test_failures_show_the_cluster_and_no_frames_of_a_verb(run_here, pytester):
    result = run_here(FAILING)
    result.assert_outcomes(failed=5, passed=1)
    reports = dict(zip(("wait", "assertion", "verb", "defect", "closed"), _failures(result), strict=True))
    section = "-- kafka --"
    assert section not in reports["wait"], "the message has it"
    assert re.search(r"E +orders-0: leader [123], epoch 0, ISR ", reports["wait"])
    assert "is paused" in reports["wait"]
    assert section in reports["assertion"]
    assert "high watermark 1; logs: " in reports["assertion"]
    for name, error in {
        "wait": "ClusterTimeoutError",
        "verb": "UnknownBrokerError",
        "closed": "WrongStateError",
    }.items():
        assert reports[name].count(".py:") == 1, reports[name]
        assert error in reports[name]
    assert "cluster.py:" in reports["defect"], "frames that may show a defect are kept"


def _failures(result):
    """Return the text of each failure."""
    text = result.stdout.str().partition("= FAILURES =")[2].partition("= short test summary")[0]
    return re.split(r"^_{5,} test_\w+ _{5,}$", text, flags=re.MULTILINE)[1:]


FRESH = """
seen = []

@pytest.mark.kafka(brokers=1, topics=["orders"])
@pytest.mark.parametrize("number", [1, 2])
def test_fresh(kafka_cluster, number):
    assert kafka_cluster.produce("orders", "x").offset == 0
    assert kafka_cluster not in seen
    seen.append(kafka_cluster)

def test_closed():
    from broker_sim import WrongStateError
    for cluster in seen:
        with pytest.raises(WrongStateError):
            cluster.status()
"""


def test_kafka_cluster_is_new_for_each_test_and_closed_after_it(run_here):
    run_here(FRESH).assert_outcomes(passed=3)


def test_cluster_that_cannot_be_reset_is_an_error_of_its_test_alone(run_here):
    result = run_here("""
def test_closes(kafka):
    kafka.close()

def test_next(kafka):
    assert kafka.status().topics == ()
""")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_closes*", "E *WrongStateError: *"])


def test_fixture_of_the_user_wins(run_here):
    own = "import pytest\n@pytest.fixture\ndef kafka():\n    return 'mine'"
    source = "def test_own(kafka):\n    assert kafka == 'mine'"
    run_here(source, conftest=own).assert_outcomes(passed=1)


ON_ANOTHER_KAFKA = """
@pytest.mark.kafka(topics=["orders:2:1"])
@pytest.mark.parametrize("number", [1, 2])
def test_topics(kafka, number):
    kafka.create_topic("mine", 1, 1, {"retention.ms": 1000})
    assert kafka.bootstrap_servers.endswith(SERVERS)

@pytest.mark.kafka(topics=["theirs"])
def test_topic_that_is_there(kafka): pass

def test_verb(kafka):
    kafka.pause(1)

def test_typing_error(kafka):
    with pytest.raises(AttributeError):
        kafka.pauze(1)

@pytest.mark.kafka(configs={"num.partitions": 4})
def test_configs(kafka): pass

def test_own_cluster(kafka_cluster): pass
"""


def test_same_tests_run_on_another_kafka_which_keeps_its_topics(run_here):
    with Cluster(1, topics=["theirs"]) as cluster:
        servers = cluster.bootstrap_servers
        source = f"SERVERS = {servers!r}\n{ON_ANOTHER_KAFKA}"
        result = run_here(source, f"--kafka-bootstrap=127.0.0.1:1,{servers}", "-rs")
        result.assert_outcomes(passed=3, skipped=3, errors=1)
        assert [topic.name for topic in cluster.status().topics] == ["theirs"]
    result.stdout.fnmatch_lines_random(
        [
            "*: @pytest.mark.kafka: create theirs: TOPIC_ALREADY_EXISTS*",
            "SKIPPED *kafka.pause needs the simulator; run it without --kafka-bootstrap",
            "SKIPPED *configs need the simulator*",
            "SKIPPED *kafka_cluster needs the simulator*",
        ]
    )


def test_group_configs_on_another_kafka_last_until_the_reset():
    with Cluster(1) as cluster:
        kafka = RealKafka(cluster.bootstrap_servers, "--kafka-bootstrap", is_ours=False)

        def configs():
            request, response = messages.DescribeConfigsRequest, messages.DescribeConfigsResponse
            asked = request([request.DescribeConfigsResource(GROUP_RESOURCE, "billing", None)])
            (found,) = ask(cluster.bootstrap_servers, asked, 4, response, timeout_s=60).results
            return {each.name: each.value for each in found.configs if each.config_source == OWN}

        kafka.set_group_configs("billing", {"share.delivery.count.limit": 3})
        kafka.set_group_configs("billing", {"share.auto.offset.reset": "earliest"})
        assert configs() == {"share.delivery.count.limit": "3", "share.auto.offset.reset": "earliest"}
        with pytest.raises(ApiError, match="configure group billing: INVALID_CONFIG"):
            kafka.set_group_configs("billing", {"share.delivery.count.limit": 99})
        kafka.reset()
        assert configs() == {}


def test_unreachable_kafka_is_one_line_before_the_first_test(run_here):
    source = "@pytest.mark.kafka(topics=['orders'])\ndef test_it(kafka): pass"
    result = run_here(source, "--kafka-bootstrap=127.0.0.1:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.outlines == []
    result.stderr.fnmatch_lines(["ERROR: no Kafka at --kafka-bootstrap=127.0.0.1:1: * Connection refused"])


WRONG = """
@pytest.mark.kafka(3)
def test_position(kafka): pass

@pytest.mark.kafka(broker=3)
def test_argument(kafka_cluster): pass

@pytest.mark.kafka(configs={"no.such": 1})
def test_config(kafka): pass

@pytest.mark.kafka(topics=["a:b"])
def test_topic(kafka): pass

@pytest.mark.kafka(topics=["a", "a"])
def test_twice(kafka): pass

@pytest.mark.kafka(topics=["a:1:9"])
def test_replicas(kafka_cluster): pass

@pytest.mark.kafka(users={"a": "b"})
def test_users(kafka): pass

@pytest.mark.virtual_time
def test_virtual(kafka): pass

@pytest.mark.virtual_time
def test_virtual_cluster(kafka_cluster): pass
"""


def test_mistakes_are_reported_in_one_line(run_here):
    result = run_here(WRONG)
    result.assert_outcomes(errors=9)
    result.stdout.no_fnmatch_line("E  *")  # nothing but these lines
    result.stdout.fnmatch_lines_random(
        [
            "test_position: @pytest.mark.kafka: pass keyword arguments only, not 3",
            "test_argument: @pytest.mark.kafka: unknown argument 'broker' (did you mean brokers[?]); allowed: *",
            "test_config: @pytest.mark.kafka: Unknown broker config name: no.such*",
            "test_topic: @pytest.mark.kafka: topics=?'a:b'?: 'a:b' is not NAME:PARTITIONS:RF:KEY=VALUE*",
            "test_twice: @pytest.mark.kafka: Topic 'a' already exists.",
            "test_replicas: @pytest.mark.kafka: * replication factor of 9 cannot be reached *",
            "test_users: @pytest.mark.kafka: users need a listener*",
            "test_virtual: virtual time needs pytest_plugins = ?*pytest_plugin*? in conftest.py",
            "test_virtual_cluster: in virtual time use the fixture kafka*",
        ]
    )


CHAOS = """
@pytest.mark.chaos(seeds=1)
async def test_chaos(chaos): pass

@pytest.mark.chaos
async def test_its_cluster(kafka): pass
"""


def test_error_of_chaos_without_its_plugin_names_the_plugin(run_here):
    result = run_here(CHAOS)
    result.assert_outcomes(errors=2)
    needs = "virtual time needs pytest_plugins = ?*pytest_plugin*? in conftest.py"
    result.stdout.fnmatch_lines([f"test_chaos: {needs}", f"test_its_cluster: {needs}"])


OWN_CHAOS = """
@pytest.mark.chaos
def test_own(chaos):
    assert chaos == "mine"
"""


def test_marker_and_fixture_of_that_name_may_be_the_users(run_here):
    own = "import pytest\n@pytest.fixture\ndef chaos():\n    return 'mine'"
    run_here(OWN_CHAOS, conftest=own).assert_outcomes(passed=1)


BOTH_TIMES = """
import broker_sim

@pytest.mark.virtual_time
async def test_virtual(kafka):
    assert isinstance(kafka, broker_sim.SimulatedCluster)

def test_real(kafka):
    assert isinstance(kafka, broker_sim.Cluster)

@pytest.mark.kafka(brokers=1)
@pytest.mark.virtual_time
async def test_two_markers(kafka):
    pass
"""


def test_one_suite_has_clusters_in_virtual_and_in_real_time(run_suite):
    result = run_suite(BOTH_TIMES)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["test_two_markers: pass the arguments to @pytest.mark.virtual_time*"])


def test_pytest_does_not_rewrite_the_simulator(pytestconfig):
    """This run has the plugin too, and pytest rewrites what a package with a plugin has."""
    assert pytestconfig.pluginmanager.has_plugin(PLUGIN)
    assert not pytestconfig.pluginmanager.rewrite_hook._is_marked_for_rewrite("broker_sim.cluster.cluster", None)


OUTLIVING = """
import socket

kept = []

def teardown_module():
    for each in kept:
        each.close()

@pytest.mark.kafka(brokers=1)
def test_left(kafka):
    kept.append(socket.create_connection(kafka.address(1)))

@pytest.mark.kafka(brokers=1)
def test_own(kafka_cluster):
    kept.append(socket.create_connection(kafka_cluster.address(1)))

@pytest.mark.kafka(brokers=1)
def test_failed(kafka):
    kept.append(socket.create_connection(kafka.address(1)))
    assert False

@pytest.fixture(scope="session")
def application(kafka_session):
    host, port = kafka_session(brokers=1).bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as connection:
        yield connection

@pytest.mark.kafka(brokers=1)
def test_lasting(kafka, application):
    pass

@pytest.mark.kafka(brokers=1)
def test_still_there(kafka, application):
    application.setblocking(False)
    with pytest.raises(BlockingIOError):
        application.recv(1)

def test_topics(kafka_session):
    with pytest.raises(ValueError, match="no topics"):
        kafka_session(topics=["orders"])
    for left in kept:
        left.close()
"""


def test_clients_that_outlive_their_test_are_named_in_a_warning(run_here):
    result = run_here(OUTLIVING, "-W", "always::broker_sim.errors.OutlivingClientWarning")
    result.assert_outcomes(passed=5, failed=1, warnings=2)
    line = (
        "*OutlivingClientWarning: clients outlived {} and were cut off: None (127.0.0.1:*, last request None); close*"
    )
    result.stdout.fnmatch_lines([line.format("test_left"), line.format("test_own")])


def test_outliving_clients_are_named_by_workers_of_xdist_too(run_here):
    options = ("-p", "xdist.plugin", "-n", "1", "-W", "always::broker_sim.errors.OutlivingClientWarning")
    result = run_here(OUTLIVING, *options)
    result.assert_outcomes(passed=5, failed=1, warnings=2)


def test_outliving_client_can_be_an_error(run_here):
    result = run_here(OUTLIVING, "-k", "test_left")
    result.assert_outcomes(passed=1, errors=1)

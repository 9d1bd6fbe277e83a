"""Claims about registration, heartbeats and controlled shutdown, as one broker sends them."""

from random import Random

import pytest

from broker_sim.broker.lifecycle import CONTROLLED_SHUTDOWN_TIMEOUT_MS, BrokerLifecycle, LifecycleState
from broker_sim.config import BrokerConfig
from broker_sim.controller import Controller, CreatableTopic
from broker_sim.controller.controller_link import ControllerLink
from broker_sim.errors import ApiError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.links import CONTROLLER_ID, LinkFault, Links
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler
from tests.broker_sim.broker_contexts import broker_context

BROKER = 1
INTERVAL_MS = 2_000
SESSION_MS = 9_000
FIRST_SHUTDOWN_INTERVAL_MS = 50


class OneBroker:
    """The lifecycle of broker 1 with a controller, and other brokers that the test speaks for.

    Metadata reaches broker 1 at once unless `holds_metadata`.
    """

    def __init__(self):
        self.scheduler = VirtualScheduler()
        self.config = BrokerConfig.from_mapping({})
        self.controller = Controller(
            self.scheduler.clock, Random(1), self.config, publish=self._publish, cluster_id="cluster"
        )
        self.links = Links(self.scheduler)
        self.links.attach(CONTROLLER_ID, Process("controller", self.scheduler))
        self.links.listen(CONTROLLER_ID)
        self.holds_metadata = False
        self.dies_when_stopped = True
        self._held = []
        self._epochs = {}
        self._rng = Random(2)
        self._tick()
        self.make_broker()

    def make_broker(self, previous_broker_epoch=-1):
        """Make a new life of broker 1; the test starts it."""
        self.process = Process("broker-1", self.scheduler)
        self.links.attach(BROKER, self.process)
        self.lifecycle = BrokerLifecycle(BROKER, self.config, self.process, endpoints=(), rng=self._rng)
        self.image_version = -1
        self.stopped_at_ms = None
        context = broker_context(
            process=self.process, links=self.links, broker_epoch=lambda: self.lifecycle.broker_epoch
        )
        link = ControllerLink(context, self.controller)
        self.unfenced_ms = []
        self.start = lambda: self.lifecycle.start(
            link,
            lambda: self.image_version,
            previous_broker_epoch,
            on_unfenced=lambda: self.unfenced_ms.append(self.now_ms),
        )

    def kill(self):
        self.process.kill()
        self.links.detach(BROKER)

    @property
    def now_ms(self):
        return self.scheduler.clock.now_ms()

    @property
    def registration(self):
        return self.controller.image.brokers[BROKER]

    @property
    def since_heartbeat_ms(self):
        return self.controller.describe().time_since_last_heartbeat_ms.get(BROKER)

    def advance(self, ms):
        self.scheduler.advance_to(self.now_ms + ms)

    def register_other(self, broker_id):
        """Register a process that the test speaks for, under its own id or that of broker 1."""
        self._epochs[broker_id] = self.controller.register_broker(
            broker_id, endpoints=(), rack=None, incarnation_id=broker_id.to_bytes(16, "big")
        )
        self.heartbeat_of(broker_id)

    def heartbeat_of(self, broker_id):
        self.controller.broker_heartbeat(
            broker_id,
            self._epochs[broker_id],
            wants_shutdown=False,
            current_metadata_version=self.controller.image.version,
        )

    def create_topic(self, *replicas, **configs):
        named = {key.replace("_", "."): value for key, value in configs.items()}
        wanted = CreatableTopic("t", assignments=[(0, replicas)], configs=named)
        (result,) = self.controller.create_topics([wanted])
        assert result.outcome.ok, result

    @property
    def partition(self):
        return self.controller.image.partition(TopicPartition("t", 0))

    def begin_shutdown(self):
        self.lifecycle.begin_controlled_shutdown(self._on_stopped)

    def deliver_metadata(self):
        self.holds_metadata = False
        for image in self._held:
            self._publish(image)

    def _on_stopped(self):
        assert self.stopped_at_ms is None
        self.stopped_at_ms = self.now_ms
        if self.dies_when_stopped:
            self.process.kill()

    def _publish(self, image):
        if self.holds_metadata:
            self._held.append(image)
        else:
            self.links.send(CONTROLLER_ID, BROKER, self._on_image, image)

    def _on_image(self, image):
        self.image_version = image.version
        self.lifecycle.on_image(image)

    def _tick(self):
        self.controller.tick()
        delay_ms = self.controller.next_deadline_ms() - self.now_ms
        self.scheduler.call_later(delay_ms, self._tick)


@pytest.fixture
def rig():
    """A broker that has not been started, and two others that run."""
    made = OneBroker()
    for other in (2, 3):
        made.register_other(other)
    return made


@pytest.fixture
def running(rig):
    """The same with broker 1 running; its heartbeats are at 0, 2000, 4000 ms."""
    rig.start()
    rig.advance(0)
    assert rig.lifecycle.state is LifecycleState.RUNNING
    return rig


class TestDefectOfTheController:
    @pytest.mark.parametrize("request_name", ["register_broker", "broker_heartbeat"])
    def test_broker_repeats_a_failed_request(self, rig, monkeypatch, request_name):
        reported = []
        monkeypatch.setattr(rig.scheduler, "report_error", lambda *report: reported.append(report))
        with monkeypatch.context() as defect:
            defect.setattr(rig.controller, request_name, lambda *_, **__: 1 // 0)
            rig.start()
            rig.advance(INTERVAL_MS - 1)
        assert rig.lifecycle.state is LifecycleState.STARTING
        assert len(reported) == 1
        rig.advance(1)
        assert rig.lifecycle.state is LifecycleState.RUNNING


class TestStart:
    def test_broker_that_has_its_registration_is_unfenced_at_once(self, rig):
        rig.start()
        assert rig.lifecycle.state is LifecycleState.STARTING
        rig.advance(0)
        assert rig.lifecycle.state is LifecycleState.RUNNING
        assert not rig.registration.fenced
        assert rig.lifecycle.broker_epoch == rig.registration.epoch

    def test_broker_without_the_metadata_stays_fenced(self, rig):
        rig.holds_metadata = True
        rig.start()
        rig.advance(INTERVAL_MS)
        assert rig.lifecycle.state is LifecycleState.STARTING
        assert rig.registration.fenced

    def test_lifecycle_reports_the_first_unfencing_only(self, rig):
        rig.links.set_fault(BROKER, CONTROLLER_ID, LinkFault(delay_ms=100))
        rig.start()
        rig.advance(200)
        assert rig.unfenced_ms == [200]
        rig.process.pause()
        rig.advance(SESSION_MS + INTERVAL_MS)
        assert rig.registration.fenced
        rig.process.resume()
        rig.advance(INTERVAL_MS)
        assert not rig.registration.fenced
        assert rig.unfenced_ms == [200]

    def test_metadata_that_was_waited_for_unfences_it_without_waiting_for_a_heartbeat(self, rig):
        rig.holds_metadata = True
        rig.start()
        rig.advance(INTERVAL_MS // 2)
        rig.deliver_metadata()
        rig.advance(0)
        assert rig.lifecycle.state is LifecycleState.RUNNING
        assert rig.since_heartbeat_ms == 0

    def test_metadata_that_arrives_behind_a_heartbeat_is_told_right_after_the_answer(self, rig):
        rig.links.set_fault(BROKER, CONTROLLER_ID, LinkFault(delay_ms=100))
        rig.holds_metadata = True
        rig.start()
        rig.advance(150)  # registered, and the first heartbeat is on its way
        rig.deliver_metadata()
        rig.advance(149)
        assert rig.lifecycle.state is LifecycleState.STARTING
        rig.advance(1)
        assert rig.lifecycle.state is LifecycleState.RUNNING
        rig.advance(INTERVAL_MS)  # then the interval counts again
        assert rig.since_heartbeat_ms == INTERVAL_MS

    def test_registration_is_repeated_until_the_session_of_the_last_life_is_over(self, running):
        running.advance(4_000 + SESSION_MS - 4 * INTERVAL_MS)  # the last heartbeat was at 4000
        running.kill()
        running.make_broker()
        running.start()
        running.advance(4 * INTERVAL_MS)  # the session still counts at its very end
        running.advance(INTERVAL_MS - 1)
        assert running.lifecycle.broker_epoch == -1
        running.advance(1)
        assert running.lifecycle.state is LifecycleState.RUNNING

    @pytest.mark.parametrize("clean", [True, False])
    def test_only_a_clean_shutdown_before_keeps_it_eligible_as_leader(self, running, clean):
        running.create_topic(1, 2, min_insync_replicas="2")
        epoch = running.lifecycle.broker_epoch
        running.kill()
        while not running.registration.fenced:
            running.advance(500)
            running.heartbeat_of(2)
        assert running.partition.elr == (1,)
        running.make_broker(previous_broker_epoch=epoch if clean else -1)
        running.start()
        running.advance(0)
        assert running.lifecycle.state is LifecycleState.RUNNING
        assert running.partition.elr == ((1,) if clean else ())


class TestHeartbeats:
    def test_they_follow_each_other_by_the_interval(self, running):
        for _ in range(3):
            running.advance(INTERVAL_MS - 1)
            assert running.since_heartbeat_ms == INTERVAL_MS - 1
            running.advance(1)
            assert running.since_heartbeat_ms == 0

    def test_the_next_one_waits_for_the_answer(self, running):
        running.links.set_fault(CONTROLLER_ID, BROKER, LinkFault(delay_ms=3_000))
        running.advance(INTERVAL_MS)
        assert running.since_heartbeat_ms == 0
        running.advance(3_000 + INTERVAL_MS - 1)
        assert running.since_heartbeat_ms == 3_000 + INTERVAL_MS - 1
        running.advance(1)
        assert running.since_heartbeat_ms == 0

    def test_a_broker_that_was_cut_off_comes_back_by_the_heartbeat_that_waited(self, running):
        running.links.set_fault(BROKER, CONTROLLER_ID, LinkFault(drop=True))
        running.advance(SESSION_MS + INTERVAL_MS)
        assert running.registration.fenced
        running.links.set_fault(BROKER, CONTROLLER_ID, LinkFault())
        running.advance(0)
        assert not running.registration.fenced


class TestControlledShutdown:
    def test_broker_that_leads_nothing_stops_at_once(self, running):
        running.advance(100)
        running.begin_shutdown()
        running.advance(0)
        assert running.stopped_at_ms == 100
        assert running.lifecycle.state is LifecycleState.SHUTTING_DOWN
        assert running.registration.fenced

    @pytest.mark.parametrize(
        ("others_know_after_ms", "stopped_after_ms"),
        [
            (FIRST_SHUTDOWN_INTERVAL_MS - 1, FIRST_SHUTDOWN_INTERVAL_MS),
            (FIRST_SHUTDOWN_INTERVAL_MS + 1, FIRST_SHUTDOWN_INTERVAL_MS + INTERVAL_MS),
        ],
    )
    def test_stopping_broker_repeats_its_heartbeat_after_50_ms_then_by_interval(
        self, running, others_know_after_ms, stopped_after_ms
    ):
        running.create_topic(1, 2, 3)
        running.advance(100)
        running.begin_shutdown()
        running.advance(0)
        assert (running.partition.leader, running.partition.isr) == (2, (2, 3))
        running.advance(others_know_after_ms)
        for other in (2, 3):
            running.heartbeat_of(other)
        running.advance(stopped_after_ms - others_know_after_ms - 1)
        assert running.stopped_at_ms is None
        running.advance(1)
        assert running.stopped_at_ms == 100 + stopped_after_ms

    def test_another_broker_that_is_silent_holds_it_up_until_that_one_is_fenced(self, running):
        running.create_topic(1, 2, 3)
        running.begin_shutdown()
        while not running.controller.image.brokers[3].fenced:
            assert running.stopped_at_ms is None
            running.advance(500)
            running.heartbeat_of(2)
        running.advance(INTERVAL_MS)
        assert running.stopped_at_ms is not None

    def test_it_begins_right_after_the_answer_to_a_heartbeat_under_way(self, running):
        running.links.set_fault(CONTROLLER_ID, BROKER, LinkFault(delay_ms=100))
        running.advance(INTERVAL_MS + 50)
        running.begin_shutdown()
        running.advance(49)
        assert not running.registration.fenced
        running.advance(1)
        assert running.registration.fenced
        assert running.stopped_at_ms is None
        running.advance(100)
        assert running.stopped_at_ms == INTERVAL_MS + 200

    def test_broker_that_was_never_unfenced_stops_without_asking(self, rig):
        rig.holds_metadata = True
        rig.start()
        rig.advance(100)
        rig.begin_shutdown()
        assert rig.stopped_at_ms == 100

    def test_fenced_broker_stops_at_its_next_heartbeat(self, running):
        running.process.pause()
        running.advance(SESSION_MS + INTERVAL_MS)
        assert running.registration.fenced
        running.process.resume()
        running.begin_shutdown()
        running.advance(0)
        assert running.stopped_at_ms == running.now_ms

    @pytest.mark.parametrize("refused", [False, True])
    def test_without_permission_it_stops_after_five_minutes(self, running, refused):
        running.links.set_fault(BROKER, CONTROLLER_ID, LinkFault(drop=True))
        running.advance(SESSION_MS + INTERVAL_MS)
        if refused:
            running.register_other(BROKER)  # so the heartbeats of broker 1 have an old epoch
            running.links.set_fault(BROKER, CONTROLLER_ID, LinkFault())
        began_ms = running.now_ms
        running.begin_shutdown()
        running.advance(CONTROLLED_SHUTDOWN_TIMEOUT_MS - 1)
        assert running.stopped_at_ms is None
        running.advance(1)
        assert running.stopped_at_ms == began_ms + CONTROLLED_SHUTDOWN_TIMEOUT_MS

    def test_nothing_is_due_after_the_permission(self, running):
        running.dies_when_stopped = False
        running.begin_shutdown()
        running.advance(0)
        session_ended_ms = SESSION_MS + INTERVAL_MS
        running.advance(session_ended_ms)
        assert running.since_heartbeat_ms is None
        running.advance(CONTROLLED_SHUTDOWN_TIMEOUT_MS - session_ended_ms)
        assert running.stopped_at_ms == 0

    def test_restart_is_refused_until_the_session_ends_all_the_same(self, running):
        running.begin_shutdown()
        running.advance(0)
        with pytest.raises(ApiError, match="Another broker is registered"):
            running.register_other(BROKER)

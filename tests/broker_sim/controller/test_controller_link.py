"""Claims about verbs of the controller that fail: the broker hears of it, and nothing is changed."""

from random import Random

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.controller import Controller, CreatableTopic
from broker_sim.controller.controller_link import ControllerLink
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata import MetadataDelta
from broker_sim.runtime.links import CONTROLLER_ID, Links
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler
from tests.broker_sim.broker_contexts import broker_context

BROKER = 1


class ReportingScheduler(VirtualScheduler):
    """Keeps the errors that nobody expected."""

    def __init__(self):
        super().__init__()
        self.reported = []

    def report_error(self, message, error):
        self.reported.append((message, error))


class Linked:
    """A broker that calls its controller; `answers` are results and error codes in order."""

    def __init__(self):
        self.scheduler = ReportingScheduler()
        self.controller = Controller(
            self.scheduler.clock, Random(1), BrokerConfig.from_mapping({}), publish=lambda _: None, cluster_id="cluster"
        )
        links = Links(self.scheduler)
        links.attach(CONTROLLER_ID, Process("controller", self.scheduler))
        links.listen(CONTROLLER_ID)
        process = Process("broker-1", self.scheduler)
        links.attach(BROKER, process)
        self.link = ControllerLink(broker_context(links=links, process=process), self.controller)
        self.answers = []

    def call(self, verb):
        self.link.call(verb, self.answers.append, lambda error: self.answers.append(error.error_code))
        self.scheduler.advance_to(self.scheduler.clock.now_ms())


@pytest.fixture
def linked():
    return Linked()


def test_defect_of_a_verb_is_answered_and_reported_once(linked):
    defect = AssertionError("cannot be")

    def verb(_):
        raise defect

    linked.call(verb)
    linked.call(lambda _: "next")
    assert linked.answers == [ErrorCode.UNKNOWN_SERVER_ERROR, "next"]
    assert linked.scheduler.reported == [("the controller failed to serve broker-1", defect)]


def test_refusal_is_answered_and_not_reported(linked):
    def verb(_):
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)

    linked.call(verb)
    assert linked.answers == [ErrorCode.STALE_BROKER_EPOCH]
    assert linked.scheduler.reported == []


def test_verb_that_fails_half_way_leaves_the_metadata_as_it_was(linked, monkeypatch):
    active = linked.controller
    epoch = active.register_broker(BROKER, endpoints=(), rack=None, incarnation_id=bytes(16))
    active.broker_heartbeat(BROKER, epoch, wants_shutdown=False, current_metadata_version=active.image.version)
    (result,) = active.create_topics([CreatableTopic("t", 1, 1)])
    assert result.outcome.ok
    before = active.image
    monkeypatch.setattr(MetadataDelta, "apply", lambda _: 1 // 0)
    linked.call(lambda controller: controller.delete_topics(["t"]))
    assert linked.answers == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert active.image is before
    assert "t" in active.image.topics

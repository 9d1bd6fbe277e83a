"""What a leader logs about its ISR when the controller accepts its proposals."""

import logging


def isr_events(caplog):
    return [line.split()[0] for line in caplog.messages if line.startswith("isr_")]


def test_accepted_proposal_is_logged_once(broker, caplog):
    caplog.set_level(logging.INFO, "broker_sim")
    partition = broker.lead()
    broker.produce(acks=1)
    broker.advance(20_000)
    partition.maybe_shrink_isr()
    assert isr_events(caplog) == []
    broker.accept(partition)
    assert isr_events(caplog) == ["isr_shrunk"]
    assert "isr=[1] previous_isr=[1, 2, 3]" in caplog.messages[-1]
    broker.replicate(2, 1)
    broker.accept(partition)
    assert isr_events(caplog) == ["isr_shrunk", "isr_expanded"]
    assert "isr=[1, 2] previous_isr=[1]" in caplog.messages[-1]


def test_proposals_are_logged_at_debug(broker, caplog):
    caplog.set_level(logging.DEBUG, "broker_sim.replica")
    partition = broker.lead()
    broker.produce(acks=1)
    broker.advance(20_000)
    partition.maybe_shrink_isr()
    assert isr_events(caplog) == ["isr_proposed"]

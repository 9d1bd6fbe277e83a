"""Charts of rows that the pages of other tests do not have."""

import re

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def charts(require_spark):
    from broker_sim_integration.pipeline.report import charts

    return charts


def level(broker, side="sim", purgatory="Produce"):
    fixed = {"bin": 3, "peak": 2, "closing": 1}
    return {"purgatory": purgatory, "side": side, "broker": broker, **fixed}


def panels(picture):
    return len(re.findall(r'id="axes_\d+"', picture))


def test_more_brokers_than_columns_go_on_in_the_next_row(charts):
    rows = [level(broker) for broker in range(1, 6)] + [level(9, purgatory="Fetch")]
    picture = charts.occupancy(rows, 1_000)
    titles = re.findall(r">(\w+, broker \d)</text>", picture)
    assert sorted(titles) == ["Fetch, broker 9", *[f"Produce, broker {n}" for n in range(1, 6)]]
    assert panels(picture) == 6


def test_sides_share_a_panel_and_are_named_once(charts):
    picture = charts.occupancy([level(1, "sim"), level(1, "kafka"), level(2, "sim")], 1_000)
    assert panels(picture) == 2
    assert [picture.count(f">{side}</text>") for side in ("sim", "kafka")] == [1, 1]
    first, second = (picture.index(colour) for colour in ("stroke: #d9741a", "stroke: #1f6fb2"))
    assert first < second, "the wide line of Kafka lies below"
    assert re.search(r"stroke: #d9741a; stroke-width: 3\.5", picture)


def test_waiting_of_nothing_has_a_place_on_the_axis(charts):
    rows = [
        {"purgatory": "Fetch", "side": "sim", "outcome": "completed", "operations": 2, "up_to_ms": ms}
        for ms in (0, 7, 40_000)
    ]
    picture = charts.waiting(rows)
    assert "Fetch, completed: 6" in picture
    for label in ("0", "1", "10k"):
        assert f">{label}</text>" in picture

"""Families of metrics, made where prometheus-client is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """Return a family without values, of something that goes up and down."""
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - an extra

    return GaugeMetricFamily(name, text, labels=labels)


def counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    """Return a family without values, of something that only goes up; `_total` is added to its name."""
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - an extra

    return CounterMetricFamily(name, text, labels=labels)

"""The life of every delayed operation as JSON lines; Kafka has no counterpart.

purgatory -> PurgatoryTracer -> steps -> the trace's thread -> lines -> sinks
"""

from broker_sim.trace.lines import FIELDS, IDS_PER_LIFE
from broker_sim.trace.sinks import TraceSink
from broker_sim.trace.trace import Trace
from broker_sim.trace.tracer import PurgatoryTracer

__all__ = ["FIELDS", "IDS_PER_LIFE", "PurgatoryTracer", "Trace", "TraceSink"]

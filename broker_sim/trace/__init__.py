"""The trace: one JSON line for each step in the life of a delayed operation."""

from broker_sim.trace.trace import FIELDS, PurgatoryTracer, Trace, TraceSink

__all__ = ["FIELDS", "PurgatoryTracer", "Trace", "TraceSink"]

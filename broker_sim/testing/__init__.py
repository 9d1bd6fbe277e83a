"""The pytest plugins of users' test suites: a cluster for tests, virtual time and chaos."""

from typing import Final

KAFKA_MARKER: Final = "kafka"
VIRTUAL_MARKER: Final = "virtual_time"
CHAOS_MARKER: Final = "chaos"
INSIDE_PLUGIN: Final = "broker_sim.testing.inside"
"""Name of the plugin in the process of a `def` test that runs in virtual time."""
PDB_ADVICE: Final = (
    "debuggers do not work in virtual time: the test runs in a process of its own, and its time would stand still. "
    "Use print(), whose output is in the report, or drop the marker to run the test in real time with the fixture kafka"
)

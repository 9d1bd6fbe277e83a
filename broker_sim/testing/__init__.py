"""The pytest plugins of users' test suites: a cluster for tests, virtual time and chaos."""

from typing import Final

KAFKA_MARKER: Final = "kafka"
VIRTUAL_MARKER: Final = "virtual_time"
CHAOS_MARKER: Final = "chaos"
INSIDE_PLUGIN: Final = "broker_sim.testing.inside"
"""Name of the plugin in the process of a test that is written with `def` and runs in virtual time."""
PDB_ADVICE: Final = (
    "a debugger has no virtual form: the test runs in a process of its own, and virtual time stands still while it "
    "waits for you. print() is in the report; or run the test without the marker, in real time, with the fixture kafka"
)

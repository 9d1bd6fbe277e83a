"""The pytest plugins of users' test suites: a cluster for tests, virtual time and chaos."""

from typing import Final

KAFKA_MARKER: Final = "kafka"
VIRTUAL_MARKER: Final = "virtual_time"
CHAOS_MARKER: Final = "chaos"

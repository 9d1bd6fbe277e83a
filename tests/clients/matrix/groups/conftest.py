"""Members of groups that read all of a topic from the earliest offset and commit each record.

kcat does it in words of its own, and commits every five seconds.
"""

from contextlib import closing

import pytest

LONG_SESSION_MS = 240_000
"""Of a member that lives: it is not lost, however long a busy machine keeps it from running."""
HEARTBEAT_MS = 400
KCAT_RECORD = '{"event":"record","partition":%p,"offset":%o}\n'


class Members:
    """Starts members of a cluster's groups, and ends at its end those that run."""

    def __init__(self, bootstrap_servers, processes):
        self._bootstrap_servers = bootstrap_servers
        self._processes = processes

    def start(self, kind, group, topic, strategy, session_ms=LONG_SESSION_MS):
        """Start a member of a kind of client."""
        if kind == "kcat":
            settings = {
                "session.timeout.ms": session_ms,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": strategy,
            }
            words = [word for item in settings.items() for word in ("-X", "{}={}".format(*item))]
            told = ["-b", self._bootstrap_servers, *words, "-u", "-f", KCAT_RECORD, "-G", group]
            return self._processes.start(kind, "group", *told, topic)
        told = [self._bootstrap_servers, group, topic, session_ms, HEARTBEAT_MS, strategy]
        return self._processes.start(kind, "group", *told)

    def close(self):
        self._processes.close()


@pytest.fixture(scope="session")
def open_members(side, open_processes):
    """Return a function that returns `Members`, to be closed."""
    return lambda: Members(side.bootstrap_servers, open_processes())


@pytest.fixture
def start_member(open_members):
    """Return a function that starts a member: kind of client, group, topic, strategy."""
    with closing(open_members()) as members:
        yield members.start

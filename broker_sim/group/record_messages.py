"""The key and value classes of `__consumer_offsets`, created on first use.

`record_messages.OffsetCommitKey`, `record_messages.OffsetCommitValue`: Kafka's names, with fields in
snake_case. `record_messages.pyi` has the static types. Kafka: the generated package
`org.apache.kafka.coordinator.group.generated`.
"""

import os
from typing import Any

from broker_sim.coordinator.records import RecordClasses

_classes = RecordClasses(__name__, __spec__.loader, os.path.dirname(__file__))  # noqa: PTH120 - see RecordClasses


def __getattr__(name: str) -> Any:
    return globals().setdefault(name, _classes.make(name))


def __dir__() -> list[str]:
    return _classes.names()

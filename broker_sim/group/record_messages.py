"""The key and value classes of `__consumer_offsets`, created on first use.

`record_messages.OffsetCommitKey`, `record_messages.OffsetCommitValue`: Kafka's names, with fields in
snake_case. `record_messages.pyi` has the static types. Kafka: the generated package
`org.apache.kafka.coordinator.group.generated`.
"""

from broker_sim.coordinator.records import record_classes

__getattr__, __dir__ = record_classes(globals())

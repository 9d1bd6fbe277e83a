"""The key and value classes of `__share_group_state`, created on first use.

`record_messages.ShareSnapshotKey`, `record_messages.ShareSnapshotValue`: Kafka's names, with fields in
snake_case. `record_messages.pyi` has the static types. Kafka: the generated package
`org.apache.kafka.coordinator.share.generated`.
"""

from broker_sim.coordinator.records import record_classes

__getattr__, __dir__ = record_classes(globals())

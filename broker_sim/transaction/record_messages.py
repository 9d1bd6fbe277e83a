"""The key and value classes of `__transaction_state`, created on first use.

`record_messages.TransactionLogKey`, `record_messages.TransactionLogValue`: Kafka's names, with fields
in snake_case. `record_messages.pyi` has the static types. Kafka: the generated package
`org.apache.kafka.coordinator.transaction.generated`.
"""

from broker_sim.coordinator.records import record_classes

__getattr__, __dir__ = record_classes(globals())

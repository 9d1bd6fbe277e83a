"""Every Kafka message as a class, generated at its first use.

`messages.ProduceRequest`, `messages.ProduceRequest.TopicProduceData`: Kafka's names, with
fields in snake_case. `messages.pyi` has the static types. Thread-safe. Mirrors the generated package
`org.apache.kafka.common.message`.
"""

from typing import Any

from broker_sim.protocol.message import make_message_class
from broker_sim.protocol.schema import load_message, message_names


def __getattr__(name: str) -> Any:
    try:
        spec = load_message(name)
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return globals().setdefault(name, make_message_class(spec, __name__))


def __dir__() -> list[str]:
    return message_names()

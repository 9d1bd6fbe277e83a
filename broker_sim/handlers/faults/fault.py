"""An injected fault: the requests that it hits, and its effect; Kafka has no counterpart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeVar

from broker_sim.errors import ErrorCode, did_you_mean
from broker_sim.handlers.api_table import ApiTable
from broker_sim.handlers.error_table import check_error, response_error
from broker_sim.handlers.faults.targets import (
    GROUP_FIELDS,
    PARTITIONS,
    TOPICS,
    TRANSACTION_FIELDS,
    names_any,
)
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.release import newest_release
from broker_sim.runtime.arguments import checked_ms, names_checked

_API_TABLE = ApiTable(newest_release(), client_metrics=True)
M = TypeVar("M", bound=Enum)


class Damage(Enum):
    """Kinds of damage to the first batch of a fetched partition."""

    CRC = "crc"
    """A bit of its records is flipped, so that its checksum does not match."""
    CUT = "cut"
    """The batch is truncated in the middle."""


class Loss(Enum):
    """The message that is lost when the connection breaks."""

    REQUEST = "request"
    """The connection breaks before the broker handles the request."""
    RESPONSE = "response"
    """The broker handles the request, but the client gets no response."""


@dataclass(init=False, frozen=True, slots=True)
class Fault:
    """An error, a delay or a loss, and the requests that it hits.

    `api` is Kafka's name, in any case and with or without underscores: "Produce", "LIST_OFFSETS".
    `broker`, `topic` and `partition` narrow the fault down; None stands for all. `error` is the name of an error
    code in any case, which is returned instead of handling the request: nothing is appended, nothing is read.
    It is returned where Kafka returns it: an error of a topic or partition only for that one, while the rest of
    the request is served; other errors for the whole request. Request versions that cannot return it are not hit.
    `lose` breaks the connection, before the broker handles the request ("request") or when it would respond
    ("response"). `delay_ms` delays the response, with or without an error. `throttle_ms` throttles the
    client as a quota does: the response has that throttle time, a consumer's fetch is answered empty, and
    the broker reads no further request from the connection for that time. `hold` keeps requests from the broker
    until the handle's `release()` or the end of the fault; later requests of their connections wait too. `damage`
    breaks the first batch that a fetch reads: a wrong checksum ("crc"), or a truncated batch ("cut").
    `only_counts` counts matching requests and changes nothing.

    `client_id`, `group` and `transactional_id` narrow the fault down to requests of that client, or with that
    group or transactional id. The first `skip` matching requests pass, and each later one is hit with
    `probability`, drawn from the cluster's seed. `count` is the number of hits after which the fault ends, None
    for no limit.

    Raises ValueError with a one-line message that lists the allowed values.
    """

    api: ApiKey
    broker: int | None
    topic: str | None
    partition: int | None
    error: ErrorCode | None
    lose: Loss | None
    delay_ms: int
    throttle_ms: int
    hold: bool
    damage: Damage | None
    only_counts: bool
    client_id: str | None
    group: str | None
    transactional_id: str | None
    skip: int
    probability: float
    count: int | None

    @names_checked
    def __init__(
        self,
        *,
        api: str | ApiKey,
        broker: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        error: str | ErrorCode | None = None,
        lose: Literal["request", "response"] | Loss | None = None,
        delay_ms: int = 0,
        throttle_ms: int = 0,
        hold: bool = False,
        damage: Literal["crc", "cut"] | Damage | None = None,
        only_counts: bool = False,
        client_id: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        skip: int = 0,
        probability: float = 1,
        count: int | None = None,
    ) -> None:
        values = {
            "api": served_api(api),
            "broker": _number("broker", broker, at_least=0),
            "topic": _name("topic", topic),
            "partition": _number("partition", partition, at_least=0),
            "error": _error_code(error),
            "lose": _member("lose", lose, Loss),
            "hold": _flag("hold", hold),
            "damage": _member("damage", damage, Damage),
            "only_counts": _flag("only_counts", only_counts),
            "client_id": _name("client_id", client_id),
            "group": _name("group", group),
            "transactional_id": _name("transactional_id", transactional_id),
            "skip": _number("skip", skip, at_least=0),
            "probability": _probability(probability),
            "delay_ms": _duration_ms("delay_ms", delay_ms),
            "throttle_ms": _duration_ms("throttle_ms", throttle_ms),
            "count": _number("count", count, at_least=1),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_effect()
        self._check_scope()
        if self.error:
            check_error(self.api, self.error, _last_version(self.api))

    def names(self, topic: str, partition: int) -> bool:
        """Whether the fault hits this partition, in a request that it hits."""
        return self.topic in (None, topic) and self.partition in (None, partition)

    def is_supported_in(self, api_version: int) -> bool:
        """Whether that version of the API can return the error; True for a fault without an error."""
        return not self.error or response_error(self.api, api_version, self.error) is not None

    def _check_effect(self) -> None:
        changes = self.error or self.delay_ms or self.throttle_ms or self.damage
        if not (changes or self.lose or self.hold or self.only_counts):
            raise ValueError(
                "a fault needs an error, a loss, a delay_ms or a throttle_ms; also hold, damage or only_counts"
            )
        if self.lose and (changes or self.hold):
            raise ValueError("a fault with lose= cannot have error, delay_ms, throttle_ms, hold or damage")
        if self.error and (self.hold or self.damage):
            raise ValueError("a fault with error= cannot have hold or damage; inject two faults")
        if self.only_counts and (changes or self.lose or self.hold):
            raise ValueError("a fault with only_counts cannot have another effect")
        if self.damage and self.api is not ApiKey.FETCH:
            raise ValueError(f"damage is possible for Fetch only, not for {self.api.api_name}")

    def _check_scope(self) -> None:
        api = self.api
        if self.partition is not None and self.topic is None:
            raise ValueError("a partition needs its topic")
        if self.topic is not None and api not in PARTITIONS and api not in TOPICS:
            possible = _names_of(*PARTITIONS, *TOPICS)
            raise ValueError(f"{api.api_name} cannot be narrowed to a topic; these can: {possible}")
        for field, fields in (("group", GROUP_FIELDS), ("transactional_id", TRANSACTION_FIELDS)):
            if getattr(self, field) is not None and not names_any(api, fields):
                raise ValueError(f"{api.api_name} requests have no {field}")
        if self.partition is not None and api not in PARTITIONS:
            possible = _names_of(*PARTITIONS)
            raise ValueError(f"{api.api_name} cannot be narrowed to a partition; these can: {possible}")


def _last_version(api: ApiKey) -> int:
    spec = _API_TABLE.get(api)
    assert spec is not None
    return spec.max_version


def served_api(api: object) -> ApiKey:
    """Return the API of that name. Raises ValueError if it is not served."""
    name = api.name if isinstance(api, ApiKey) else str(api)
    api_name = name.replace("_", "").lower()
    for key in ApiKey:
        if key.name.replace("_", "").lower() == api_name:
            if _API_TABLE.get(key) is None:
                raise ValueError(f"{key.api_name} is not served; Produce, for example, is")
            return key
    served = [key.api_name for key in ApiKey if _API_TABLE.get(key) is not None]
    hint = did_you_mean(name.replace("_", ""), served) or "; write, for example, Produce or ListOffsets"
    raise ValueError(f"unknown API {api!r}{hint}")


def _name(field: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{field} must be a name, not {value!r}")


def _number(field: str, value: object, *, at_least: int) -> int | None:
    if value is None:
        return None
    # bool is an int in Python, but not a number here.
    if isinstance(value, int) and not isinstance(value, bool) and value >= at_least:
        return value
    raise ValueError(f"{field} must be a number of at least {at_least}, not {value!r}")


def _duration_ms(field: str, value: object) -> int:
    return checked_ms(field, _number(field, value, at_least=0) or 0)


def _error_code(error: object) -> ErrorCode | None:
    if error is None or (isinstance(error, ErrorCode) and error):
        return error
    name = error.upper() if isinstance(error, str) else ""
    if name in ErrorCode.__members__ and ErrorCode[name]:
        return ErrorCode[name]
    hint = did_you_mean(name, ErrorCode.__members__) or "; write, for example, NOT_LEADER_OR_FOLLOWER"
    raise ValueError(f"unknown error {error!r}{hint}")


def _member(field: str, value: object, kind: type[M]) -> M | None:
    """Return the enum member with that value."""
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        choices = " or ".join(str(member.value) for member in kind)
        raise ValueError(f"{field} must be {choices}, not {value!r}") from None


def _flag(field: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"{field} must be true or false, not {value!r}")


def _probability(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
        return float(value)
    raise ValueError(f"probability must be above 0 and at most 1, not {value!r}")


def _names_of(*apis: ApiKey) -> str:
    return ", ".join(api.api_name for api in apis)

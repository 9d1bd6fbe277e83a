"""The definition of a configuration: its name, type, default, allowed values and meaning.

Mirrors `org.apache.kafka.common.config.ConfigDef`. Deliberate difference: a configuration is
declared as an attribute of a `Configs`, `num_partitions: int = declare(INT, 1, ...)`. Kafka's name
is the attribute's name with dots, and the value is typed. Error messages are worded as
Kafka's, because clients see them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, IntEnum
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from broker_sim.errors import ConfigError, did_you_mean

ConfigValue = bool | int | float | str | tuple[str, ...] | None
"""The typed value of a configuration."""

GivenValue = str | int | float | bool
"""A value as a user sets it: a number, a boolean, or a text as in Kafka's properties."""


class Validator(Protocol):
    """Checks a value."""

    def __call__(self, name: str, value: ConfigValue, /) -> None:
        """Raise ConfigError if `value` is not allowed for the configuration of that name."""


_D = TypeVar("_D")


class ConfigType(IntEnum):
    """Types with the codes of the DescribeConfigs response."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(Enum):
    """Whether a broker configuration may be changed at run time."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


BOOLEAN: Final = ConfigType.BOOLEAN
STRING: Final = ConfigType.STRING
INT: Final = ConfigType.INT
SHORT: Final = ConfigType.SHORT
LONG: Final = ConfigType.LONG
DOUBLE: Final = ConfigType.DOUBLE
LIST: Final = ConfigType.LIST
PASSWORD: Final = ConfigType.PASSWORD
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE
MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1
MAX_ARRAY_BYTES: Final = MAX_INT - 8
"""Maximum size of an array in Java, in bytes."""
MAX_DOUBLE: Final = 1.7976931348623157e308

_TEXTS: Final = frozenset({ConfigType.STRING, ConfigType.CLASS, ConfigType.PASSWORD})
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)
_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


class ConfigDef(NamedTuple):
    """The definition of one configuration; `attribute` is its name in Python, empty without one."""

    name: str
    attribute: str
    type: ConfigType
    default: ConfigValue
    doc: str
    validator: Validator | None
    update_mode: UpdateMode
    internal: bool
    since: str = ""
    """First Kafka release with this configuration; empty for all."""

    def is_in(self, is_at_least: Callable[[str], bool]) -> bool:
        """Whether brokers have it; `is_at_least("4.4")` returns whether their release is that one or newer."""
        return not self.since or is_at_least(self.since)

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is left out of responses."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> ConfigValue:
        """Return the typed value of `text`. Raises ConfigError if it is not allowed."""
        if self.type is ConfigType.LIST:
            parts = _split(text)
            # Kafka drops duplicates (KIP-1161).
            value: ConfigValue = tuple(dict.fromkeys(parts)) if isinstance(self.validator, ListOf) else parts
        else:
            value = _parse(self.name, self.type, text.strip())
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def check_change(self, text: str) -> None:
        """Raise ConfigError for a value that a running broker refuses, which accepts no part of a list twice."""
        if self.type is ConfigType.LIST and self.validator is not None:
            self.validator(self.name, _split(text))
        else:
            self.parse(text)


def to_text(value: ConfigValue) -> str | None:
    """Return the value in the notation of Kafka's responses; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _java_double(value) if isinstance(value, float) else str(value)


def _java_double(value: float) -> str:
    """Return the result of Java's `Double.toString`."""
    if not value or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # noqa: PLC0415 - seldom needed

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or 0}E{exponent + len(rest)}"


def to_texts(values: Mapping[str, GivenValue]) -> dict[str, str]:
    """Return the values in Kafka's notation. Raises ConfigError for another type, such as None."""
    texts = {}
    for name, value in values.items():
        if not isinstance(value, GivenValue):
            raise _invalid(name, value, "Expected value to be a text, a number or a boolean")
        texts[name] = to_text(value) or ""
    return texts


def _parse(name: str, config_type: ConfigType, text: str) -> ConfigValue:
    if config_type in _TEXTS:
        return text
    if config_type is ConfigType.BOOLEAN:
        if text.lower() not in {"true", "false"}:
            raise _invalid(name, text, "Expected value to be either true or false")
        return text.lower() == "true"
    try:
        if config_type is ConfigType.DOUBLE:
            return float(text)
        value = int(text)
    except ValueError:
        raise _invalid(name, text, f"Not a number of type {config_type.name}") from None
    bits = _BITS[config_type]
    if "_" in text or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise _invalid(name, text, f"Not a number of type {config_type.name}")
    return value


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def _invalid(name: str, value: object, reason: str) -> ConfigError:
    return ConfigError(f"Invalid value {_shown(value)} for configuration {name}: {reason}")


def _shown(value: object) -> str:
    """Return the value in a form that keeps a message on one line."""
    text = str(value)
    return text if text.isprintable() else repr(text)


class Between(NamedTuple):
    """A number between two limits, either of which may be absent; mirrors `ConfigDef.Range`."""

    minimum: float | None = None
    maximum: float | None = None

    def __call__(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError when `value` is not allowed."""
        if value is None:
            return
        assert isinstance(value, int | float)
        if self.minimum is not None and not value >= self.minimum:
            raise _invalid(name, value, f"Value must be at least {self.minimum}")
        if self.maximum is not None and not value <= self.maximum:
            raise _invalid(name, value, f"Value must be no more than {self.maximum}")

    def __str__(self) -> str:
        ends = ["" if end is None else str(end) for end in (self.minimum, self.maximum)]
        return f"[{ends[0]},...{',' if ends[1] else ''}{ends[1]}]"


class BetweenOrDefault(NamedTuple):
    """A number between two limits, or the number that stands for a default.

    Mirrors `GzipCompression.LevelValidator`.
    """

    minimum: int
    maximum: int
    default: int

    def __call__(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError when `value` is not allowed."""
        assert isinstance(value, int)
        if value != self.default and not self.minimum <= value <= self.maximum:
            allowed = f"between {self.minimum} and {self.maximum} or equal to {self.default}"
            raise _invalid(name, value, f"Value must be {allowed}")

    def __str__(self) -> str:
        return f"[{self.minimum},...,{self.maximum}] or {self.default}"


class OneOf(NamedTuple):
    """One of the given words; mirrors `ConfigDef.ValidString` and `ConfigDef.CaseInsensitiveValidString`."""

    words: tuple[str, ...]
    ignores_case: bool = False
    """Whether case is ignored; the words are then upper case."""

    def __call__(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError when `value` is not allowed."""
        if (str(value).upper() if self.ignores_case else value) not in self.words:
            case = " (case insensitive)" if self.ignores_case else ""
            raise _invalid(name, value, f"String must be one of{case}: {', '.join(self.words)}")

    def __str__(self) -> str:
        return f"{'(case insensitive) ' if self.ignores_case else ''}[{', '.join(self.words)}]"


class ListOf(NamedTuple):
    """A list of different parts that are not empty; mirrors `ConfigDef.ValidList`."""

    words: tuple[str, ...] = ()
    """The parts that are allowed; any without words."""
    may_be_empty: bool = True

    def __call__(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError when `value` is not allowed."""
        assert isinstance(value, tuple)
        if not value and not self.may_be_empty:
            allowed = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {allowed}")
        if len(set(value)) < len(value):
            raise ConfigError(f"Configuration '{name}' values must not be duplicated.")
        for part in value:
            if not part:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if self.words and part not in self.words:
                raise _invalid(name, part, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        words = f"[{', '.join(self.words)}]" if self.words else ""
        return words if self.may_be_empty else f"not empty {words}".strip()


NOT_EMPTY: Final = ListOf(may_be_empty=False)
"""A list with at least one part."""


class ReplicaList:
    """Replicas as `PARTITION:BROKER`, or `*` for all; mirrors `ThrottledReplicaListValidator`.

    Unlike in other lists, Kafka accepts empty and duplicate parts.
    """

    def __call__(self, name: str, value: ConfigValue) -> None:
        """Raise ConfigError when `value` is not allowed."""
        assert isinstance(value, tuple)
        if value != ("*",) and not all(_REPLICA.fullmatch(part) for part in value):
            shown = _shown(f"[{', '.join(value)}]")
            allowed = f"the literal '*' or a list of replicas in the following format: {self}"
            raise _invalid(name, shown, f"{name} must be {allowed}")

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def at_least(minimum: int) -> Validator:
    """Allow `minimum` and every larger number; mirrors `ConfigDef.Range.atLeast`."""
    return Between(minimum)


def declare(
    config_type: ConfigType,
    default: _D,
    doc: str,
    validator: Validator | None = None,
    *,
    update_mode: UpdateMode = UpdateMode.READ_ONLY,
    internal: bool = False,
    since: str = "",
) -> _D:
    """Declare a configuration as an attribute of a `Configs`; `doc` is its description in responses to clients."""
    if config_type is LIST and validator is None:
        validator = ListOf()
    declared: Any = ConfigDef("", "", config_type, default, doc, validator, update_mode, internal, since)  # type: ignore[arg-type]  # the default is a value
    return declared  # type: ignore[no-any-return]  # `Configs` puts the default in its place


class Configs:
    """Immutable configurations as attributes, constructed from those that differ from their defaults.

    Not a dataclass: generating its methods for 230 attributes would take longer than the start of a cluster.
    """

    definitions: ClassVar[Mapping[str, ConfigDef]] = {}
    """Declarations of the class and its bases, by Kafka's name."""
    _defaults: ClassVar[Mapping[str, ConfigValue]] = {}

    def __init_subclass__(cls) -> None:
        bases = [vars(base).get("definitions", {}) for base in reversed(cls.__mro__[1:])]
        cls.definitions = {name: each for definitions in bases for name, each in definitions.items()}
        for attribute, declared in list(vars(cls).items()):
            if isinstance(declared, ConfigDef):
                name = attribute.replace("_", ".")
                cls.definitions[name] = declared._replace(name=name, attribute=attribute)
                setattr(cls, attribute, declared.default)
        cls._defaults = {each.attribute: each.default for each in cls.definitions.values()}

    def __init__(self, **values: Any) -> None:
        own = vars(self)
        own.update(self._defaults)
        for name, value in values.items():
            if not hasattr(self, name):
                raise TypeError(f"{type(self).__name__} has no configuration {name}")
            own[name] = value

    def replaced(self, **values: Any) -> Self:
        """Return a copy with these values changed."""
        return type(self)(**{**vars(self), **values})

    def _values(self) -> tuple[ConfigValue, ...]:
        return tuple(map(vars(self).__getitem__, self._defaults))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        # Some values are secrets.
        shown = [each.attribute for each in self.definitions.values() if not each.is_sensitive]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name}: configurations are immutable, see `replaced`")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete {name}: configurations are immutable")


def parse_all(definitions: Mapping[str, ConfigDef], values: Mapping[str, str], kind: str) -> dict[str, ConfigValue]:
    """Return the typed values by attribute. Raises ConfigError for the first invalid one."""
    parsed: dict[str, ConfigValue] = {}
    for name, text in values.items():
        definition = definitions.get(name)
        if definition is None:
            raise ConfigError(unknown_name(definitions, name, kind))
        parsed[definition.attribute] = definition.parse(text)
    return parsed


def check_release(
    definitions: Mapping[str, ConfigDef], names: Iterable[str], kind: str, is_at_least: Callable[[str], bool]
) -> None:
    """Raise ConfigError for a name that only newer Kafka releases have, as for an unknown one.

    `is_at_least("4.4")` returns whether the brokers are of that release or a newer one.
    """
    for name in names:
        definition = definitions.get(name)
        if definition is not None and not definition.is_in(is_at_least):
            raise ConfigError(f"Unknown {kind} config name: {name}: it needs as_version {definition.since} or newer")


def unknown_name(definitions: Mapping[str, ConfigDef], name: str, kind: str) -> str:
    """Return the message for an unknown configuration, with the nearest known name."""
    return f"Unknown {kind} config name: {_shown(name)}{did_you_mean(name, definitions)}"

"""The settings of a search: one frozen value for pytest, `broker-sim chaos`, Spark and printed tests.

A `Schedule` determines one run. The settings determine how schedules are drawn, and the properties of runs that no
schedule contains. Each field has its `Setting`, from which the marker's arguments, the options of commands and the
printed test are derived.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, get_args

from broker_sim.chaos.faults.action import ScheduleError
from broker_sim.chaos.faults.checks import check_action
from broker_sim.chaos.faults.kinds import KINDS
from broker_sim.chaos.faults.plots import PLOTS
from broker_sim.chaos.faults.weights import weights_of
from broker_sim.chaos.schedule import DEFAULT_DURATION_MS, Schedule, draw_schedule
from broker_sim.cluster.arguments import FIRST_BROKER_ID, ClusterOptions
from broker_sim.errors import ConfigError
from broker_sim.runtime.virtual.loop import DAY_S, Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.config import GivenValue

Exhaustive = bool | Literal["workers", "brokers"]
"""The subject of an exhaustive search: the orders of workers (or True), or of brokers."""
Form = Literal[
    "count", "milliseconds", "seconds", "flag", "kinds", "order", "exhaustive",
    "schedule", "topics", "configs", "security", "users",
]  # fmt: skip
"""Form of a setting's value, which determines its check and its option."""
ORDERS_OF: Final = ("workers", "brokers")
MAX_RUNS: Final = 1_000

CONFIGS: Final[Mapping[str, GivenValue]] = {
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3_000,
    "group.initial.rebalance.delay.ms": 300,
    "group.min.session.timeout.ms": 1_000,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.min.record.lock.duration.ms": 1_000,
    "group.share.min.session.timeout.ms": 1_000,
    "group.share.record.lock.duration.ms": 5_000,
    "group.share.session.timeout.ms": 4_000,
    "offsets.topic.num.partitions": 1,
    "replica.fetch.backoff.ms": 200,
    "replica.lag.time.max.ms": 5_000,
    "replica.socket.timeout.ms": 3_000,
    "share.coordinator.state.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
"""Default configurations of every run, with timeouts that expire within 20 s of faults."""


class Setting(NamedTuple):
    """The help text, form and option of a field of `Settings`."""

    help: str
    form: Form
    option: str
    """The option of commands."""
    of_a_run: bool = False
    """Whether it is a property of each run that no schedule contains, so that the printed test must."""
    beside_a_command: bool = False
    """Whether `broker-sim chaos -- COMMAND` has the option too."""


def _setting(form: Form, option: str, help: str, **where: bool) -> dict[str, Setting]:  # noqa: A002 - as click
    return {"setting": Setting(help, form, option, **where)}


def _anything(_value: object) -> bool:
    return True


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


_CHECKS: Final[Mapping[Form, tuple[Callable[[Any], bool], str]]] = {
    "count": (lambda value: _is_whole(value, 1), "pass a whole number of at least 1"),
    "milliseconds": (lambda value: value is None or _is_whole(value, 0), "pass the maximum in whole milliseconds"),
    "seconds": (lambda value: isinstance(value, int | float) and 1 <= value <= DAY_S, "pass seconds, from 1 to a day"),
    "flag": (lambda value: isinstance(value, bool), "choose True or False"),
    "order": (lambda value: value in get_args(Order), "choose 'fifo' or 'seeded'"),
    "exhaustive": (lambda value: value in (False, True, *ORDERS_OF), "choose True, 'workers' or 'brokers'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ClusterOptions):
    """The checked settings of one search. Raises ConfigError.

    The `repr` is the same for searches with the same runs: it has neither the number of seeds nor passwords.
    """

    first_broker_id: int = field(default=FIRST_BROKER_ID, init=False)
    """Fixed, because faults name brokers by their numbers."""
    brokers: int = field(
        default=3,
        metadata=_setting("count", "--brokers", "Number of brokers [default: 3].", beside_a_command=True),
    )
    configs: Mapping[str, GivenValue] | None = field(
        default=None,
        metadata=_setting(
            "configs", "--config", "A configuration of all brokers, under Kafka's name.",
            of_a_run=True, beside_a_command=True,
        ),
    )  # fmt: skip
    topics: Sequence[str] = field(
        default=(),
        metadata=_setting(
            "topics", "--topic", "Create a topic; all parts but the name are optional.",
            of_a_run=True, beside_a_command=True,
        ),
    )  # fmt: skip
    security: str | None = field(
        default=None,
        metadata=_setting(
            "security", "--security", "Security protocol of clients [default: plaintext].", of_a_run=True
        ),
    )
    users: Mapping[str, str] | None = field(
        default=None,
        repr=False,
        metadata=_setting("users", "--user", "A user who may log in, with a password.", of_a_run=True),
    )
    seeds: int = field(
        default=20, repr=False, metadata=_setting("count", "--seeds", "Number of seeds, counted from the first.")
    )
    workers: int = field(
        default=2, metadata=_setting("count", "--workers", "Number of workers that faults may hit [default: 2].")
    )
    duration_s: float = field(
        default=DEFAULT_DURATION_MS // 1_000,
        metadata=_setting(
            "seconds", "--duration", "Seconds of faults [default: 20, with a command 60].", beside_a_command=True
        ),
    )
    faults: Iterable[str] | Mapping[str, float] | None = field(
        default=None,
        metadata=_setting(
            "kinds",
            "--faults",
            f"Kinds of faults: {', '.join(KINDS)}; and plots of several faults: {', '.join(PLOTS)}.",
            beside_a_command=True,
        ),
    )
    order: Order = field(
        default="fifo",
        metadata=_setting(
            "order",
            "--order",
            "The ready task that runs first: the oldest (fifo, the default), or a random one (seeded).",
        ),
    )
    latency_ms: int | None = field(
        default=None,
        metadata=_setting("milliseconds", "--latency", "Maximum latency of a message in ms [default: drawn per seed]."),
    )
    exhaustive: Exhaustive = field(
        default=False,
        metadata=_setting(
            "exhaustive",
            "--exhaustive",
            "Run the test in all orders of its workers' turns, without faults unless a schedule is given.",
        ),
    )
    max_runs: int = field(
        default=MAX_RUNS,
        metadata=_setting("count", "--max-runs", f"Maximum number of runs with --exhaustive [default: {MAX_RUNS}]."),
    )
    schedule: str | None = field(
        default=None,
        metadata=_setting(
            "schedule", "--schedule", "Run only the schedule in this file, copied from a report.", beside_a_command=True
        ),
    )
    repair_aiokafka: bool = field(
        default=False,
        metadata=_setting(
            "flag", "--repair-aiokafka", "Repair bugs of aiokafka that make correct applications fail.", of_a_run=True
        ),
    )

    usual_configs: ClassVar = CONFIGS

    def __post_init__(self) -> None:
        self.check()
        # Values with the same repr in each process, independent of the order of sets.
        object.__setattr__(self, "topics", tuple(self.topics))
        object.__setattr__(self, "configs", dict(self.configs or {}) or None)
        object.__setattr__(self, "faults", None if self.faults is None else weights_of(self.faults))

    def check(self) -> None:
        """Raise ConfigError if no search can have these settings."""
        ClusterOptions.check(self)  # `super()` does not work: a dataclass with slots is a new class
        for name, setting in settings_by_name().items():
            is_right, advice = _CHECKS.get(setting.form, (_anything, ""))
            if not is_right(value := getattr(self, name)):
                raise ConfigError(f"{name}={value!r}: {advice}")
        if self.exhaustive and (self.faults is not None or self.order != "fifo"):
            raise ConfigError("exhaustive=True excludes faults and order; pass a schedule instead")
        try:
            weights_of(self.faults)
            if self.schedule is not None:
                for action in Schedule.parse(self.schedule).actions:
                    check_action(action)
        except ScheduleError as error:
            raise ConfigError(f"schedule: {error}") from error
        except (TypeError, ValueError) as error:
            raise ConfigError(f"faults={self.faults!r}: {error}") from error

    def all_configs(self) -> dict[str, GivenValue]:
        """Return the configurations of all brokers of a run."""
        return {**CONFIGS, **(self.configs or {})}

    def draw(self, seed: int) -> Schedule:
        """Return the schedule of a seed; with `exhaustive` it has no faults."""
        if self.exhaustive:
            return Schedule(
                seed, brokers=self.brokers, workers=self.workers, latency_ms=self.latency_ms or 0, duration_ms=0
            )
        return draw_schedule(
            seed,
            faults=self.faults,
            brokers=self.brokers,
            workers=self.workers,
            duration_ms=round(self.duration_s * 1_000),
            latency_ms=self.latency_ms,
            order=self.order,
        )

    def schedules(self, seeds: Iterable[int] | None = None) -> Iterable[Schedule]:
        """Yield the schedules of these seeds (default: `self.schedule`, or those of `self.seeds`)."""
        if self.schedule is not None and seeds is None:
            yield Schedule.parse(self.schedule)
            return
        if seeds is None:
            seeds = (0,) if self.exhaustive else range(self.seeds)
        yield from map(self.draw, seeds)

    def of_a_run(self) -> dict[str, Any]:
        """Return the settings of a run that its schedule does not contain, by name, unless they are the default."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.init and each.metadata["setting"].of_a_run and getattr(self, each.name) != each.default
        }

    def as_arguments(self) -> list[str]:
        """Return `of_a_run` as arguments of a call in Python."""
        return [
            f"{name}={list(value) if isinstance(value, tuple) else value!r}" for name, value in self.of_a_run().items()
        ]


def settings_by_name() -> dict[str, Setting]:
    """Return the `Setting` of each argument of `Settings`."""
    return {each.name: each.metadata["setting"] for each in fields(Settings) if each.init}

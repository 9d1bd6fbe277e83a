"""A sequence of actions as data: drawn from a seed, written as JSON, read back, shrunk.

Values in a request's body may be references, which are resolved during the play:

    <topic1>  <group2>        a name of this play
    <topic1.id>               the id of that topic
    <a.member_id>             a value of the client `a`'s last response, here its member id
    <a.producer_epoch+1>      a value, plus one
    <a.share_session_epoch>   the next epoch of the client's share session
    <a.active_tasks>          the last assigned tasks of a streams group's member
    <a.acquired_first>        the first record of the client's last acquisition
    <first>                   the id of a broker, by its role
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class Request:
    """A request of one client to one broker."""

    client: str
    at: str
    """A role, `coordinator NAME`, `other NAME` (a broker that is not it), or `leader TOPIC PARTITION`.

    `share state` is the share coordinator, of which there is one in a fuzzed cluster."""
    api: str
    """Kafka's name, such as JoinGroup."""
    version: int
    body: Mapping[str, Any]

    def __str__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.body.items())
        return f"{self.client} at {self.at}: {self.api} {self.version}({fields})"


@dataclass(frozen=True, slots=True)
class Fault:
    """A verb called for a broker; the play goes on when the cluster has settled."""

    verb: str
    broker: str

    def __str__(self) -> str:
        return f"{self.verb} {self.broker}"


@dataclass(frozen=True, slots=True)
class Pause:
    """Time that passes."""

    ms: int

    def __str__(self) -> str:
        return f"pause of {self.ms} ms"


Action = Request | Fault | Pause
_KINDS: Final[dict[str, type[Action]]] = {"request": Request, "fault": Fault, "pause": Pause}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic that exists before the first action; by default with one replica."""

    name: str
    partitions: int = 1
    replicas: tuple[str, ...] = ()
    """The roles of the brokers of each partition, the preferred leader first; the first broker if empty."""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence:
    """Topics to create, and actions to play one after the other, on both sides."""

    area: str
    seed: int
    topics: tuple[TopicPlan, ...]
    actions: tuple[Action, ...]

    @property
    def name(self) -> str:
        """The area and the seed."""
        return f"{self.area}_{self.seed}"

    def with_actions(self, actions: Iterable[Action]) -> Self:
        """Return the same sequence with other actions."""
        return replace(self, actions=tuple(actions))

    def without_unused_topics(self) -> Self:
        """Return the same sequence without topics that no action names."""
        named = "".join(map(str, self.actions))
        kept = (topic for topic in self.topics if f"<{topic.name}" in named)
        return replace(self, topics=tuple(kept))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; `from_json` reads them."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        return {
            "area": self.area,
            "seed": self.seed,
            "topics": [asdict(topic) for topic in self.topics],
            "actions": [{"kind": kinds[type(one)], **asdict(one)} for one in self.actions],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the sequence from the values of `to_json`. Raises KeyError and TypeError for other values."""
        topics = (TopicPlan(**{**one, "replicas": tuple(one["replicas"])}) for one in value["topics"])
        actions = (
            _KINDS[one["kind"]](**{name: one[name] for name in one if name != "kind"}) for one in value["actions"]
        )
        return cls(value["area"], value["seed"], tuple(topics), tuple(actions))

"""A sequence of actions as data: drawn from a seed, written as JSON, read back, cut when it is shrunk.

Values in the body of a request may be references, which only the play can resolve:

    <topic1>  <group2>        a name that is this play's own
    <topic1.id>               the id of that topic
    <a.member_id>             what an answer told the client `a` last, here its member id
    <a.producer_epoch+1>      the same, and one more
    <a.share_session_epoch>   the epoch with which the client's share session goes on
    <a.active_tasks>          the tasks that a member of a streams group has been given last
    <a.acquired_first>        the first record that the client has acquired last
    <first>                   the number of a broker, by its role
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
    """A verb done to a broker; the play goes on when the cluster has settled."""

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
    """A topic that is there before the first action; by default with one replica."""

    name: str
    partitions: int = 1
    replicas: tuple[str, ...] = ()
    """The roles of the brokers of each partition, the preferred leader first; the first broker if empty."""
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequence:
    """What is played on both sides: the same topics first, then the actions one after the other."""

    area: str
    seed: int
    topics: tuple[TopicPlan, ...]
    actions: tuple[Action, ...]

    @property
    def name(self) -> str:
        """The area and the seed that it was drawn from."""
        return f"{self.area}_{self.seed}"

    def with_actions(self, actions: Iterable[Action]) -> Self:
        """Return the same sequence with other actions."""
        return replace(self, actions=tuple(actions))

    def without_unused_topics(self) -> Self:
        """Return the same sequence with those topics only that an action names."""
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
        """Return the sequence that `to_json` wrote. Raises KeyError and TypeError for another text."""
        topics = (TopicPlan(**{**one, "replicas": tuple(one["replicas"])}) for one in value["topics"])
        actions = (
            _KINDS[one["kind"]](**{name: one[name] for name in one if name != "kind"}) for one in value["actions"]
        )
        return cls(value["area"], value["seed"], tuple(topics), tuple(actions))

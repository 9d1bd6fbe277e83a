"""Kafka's releases, with the API versions that their brokers advertise.

The data come from each release's own classes (`ApiKeys`, `MetadataVersion`, `Feature`) and are stored in
`releases.jsonl` by `tools/update_releases.py`. Releases before 3.3 are brokers with ZooKeeper, which have
no features.
"""

from __future__ import annotations

import json
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ConfigError
from broker_sim.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FACTS: Final = "releases.jsonl"

DEFAULT_RELEASE: Final = "4.4"
"""The release of a cluster unless `as_version` sets another one."""


class FeatureLevels(NamedTuple):
    """The levels of a feature that a release supports, and the one of a new cluster."""

    minimum: int
    maximum: int
    default: int


class Release(NamedTuple):
    """One release of Kafka, such as 3.7."""

    name: str
    apis: Mapping[ApiKey, tuple[int, int]]
    """The lowest and the highest version of each API that its brokers advertise."""
    features: Mapping[str, FeatureLevels]
    unstable_apis: Mapping[ApiKey, tuple[int, int]]
    """As `apis`, of those that have a version that the release does not finish; known from 4.0 on."""
    unstable_features: Mapping[str, FeatureLevels]
    """As `features`, of those that have a level that the release does not finish; known from 4.0 on."""

    def with_unstable(self, *, apis: bool, features: bool) -> Release:
        """Return the release with its unfinished versions of APIs, and with its unfinished levels of features."""
        return self._replace(
            apis={**self.apis, **self.unstable_apis} if apis else self.apis,
            features={**self.features, **self.unstable_features} if features else self.features,
        )

    def is_at_least(self, name: str) -> bool:
        """Return whether this is the release of that name, such as "4.4", or a newer one."""
        return _numbers(self.name) >= _numbers(name)

    def supports(self, feature: str, level: int) -> bool:
        """Return whether its brokers support that level of the feature."""
        levels = self.features.get(feature)
        return levels is not None and levels.minimum <= level <= levels.maximum

    @property
    def finalized_features(self) -> dict[str, int]:
        """Feature levels of a new cluster of this release, without those at level 0."""
        return {name: levels.default for name, levels in self.features.items() if levels.default > 0}


@cache
def releases() -> Mapping[str, Release]:
    """Return the known releases by name, the oldest first."""
    releases_by_name = {}
    facts_of_releases = get_data(__name__, _FACTS)  # read by the loader, because `open` and Path may be pyfakefs's
    assert facts_of_releases is not None
    for line in facts_of_releases.splitlines():
        facts = json.loads(line)
        releases_by_name[facts["release"]] = Release(
            facts["release"],
            _ranges(facts["apis"]),
            _levels(facts["features"]),
            _ranges(facts.get("unstable_apis", {})),
            _levels(facts.get("unstable_features", {})),
        )
    return MappingProxyType(releases_by_name)


def newest_release() -> Release:
    """Return the newest known release."""
    return list(releases().values())[-1]


def find_release(name: str | None = None) -> Release:
    """Return the release of that name, or the default for None. Raises ConfigError that lists the known ones."""
    name = DEFAULT_RELEASE if name is None else name
    release = releases().get(name)
    if release is None:
        raise ConfigError(f"Unknown Kafka release {name!r}: must be one of {', '.join(releases())}")
    return release


def _ranges(facts: Mapping[str, Sequence[int]]) -> dict[ApiKey, tuple[int, int]]:
    return {ApiKey[name]: (low, high) for name, (low, high) in facts.items()}


def _levels(facts: Mapping[str, Sequence[int]]) -> dict[str, FeatureLevels]:
    return {name: FeatureLevels(*levels) for name, levels in facts.items()}


def _numbers(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.split(".")))

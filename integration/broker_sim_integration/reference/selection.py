"""Selection of the reference: the requested one, or the best on this machine.

`auto` selects containers, else local Java processes, else the recording, with the reason.
"""

# ruff: noqa: PLC0415 - packages of a reference may be missing, so they are imported when it is selected

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import KAFKA_VERSION, kafka_jars
from broker_sim_integration.reference.progress import Progress, silent, to_stderr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim_integration.reference.clusters.cluster import ReferenceCluster

BOOTSTRAP_PREFIX = "bootstrap="


class ReferenceKind(StrEnum):
    """The source of the real Kafka's observations."""

    CONTAINERS = "containers"
    JVM = "jvm"
    BOOTSTRAP = "bootstrap"
    RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Selection:
    """A selected reference; only `recorded` has no cluster to run."""

    kind: ReferenceKind
    reason: str
    address: str | None = None
    version: str = KAFKA_VERSION
    """The version of Kafka; brokers at an address have their own."""

    def cluster(
        self,
        configs: Mapping[str, str] | None = None,
        *,
        node_configs: Mapping[int, Mapping[str, str]] | None = None,
        progress: Progress = silent,
    ) -> ReferenceCluster:
        """Return the cluster, not started yet, with `configs` added to the configurations of its brokers.

        Raise `ReferenceUnavailableError` if a package that it needs is not installed, and `ValueError` for
        `recorded`, whose observations the caller reads from their file.
        """
        with _installed():
            if self.kind is ReferenceKind.CONTAINERS:
                from broker_sim_integration.reference.clusters.containers import ContainerCluster

                return ContainerCluster(configs, node_configs=node_configs, version=self.version, progress=progress)
            if self.kind is ReferenceKind.JVM:
                from broker_sim_integration.reference.clusters.jvm import JvmCluster

                return JvmCluster(configs, node_configs=node_configs, version=self.version, progress=progress)
            if self.kind is ReferenceKind.BOOTSTRAP:
                from broker_sim_integration.reference.clusters.bootstrap import BootstrapCluster

                assert self.address is not None
                keys = {key for one in (node_configs or {}).values() for key in one}
                return BootstrapCluster(self.address, keys | set(configs or {}))
        raise ValueError("a recording needs no cluster")


def select_reference(
    reference: str = "auto", *, version: str = KAFKA_VERSION, make_image: bool = True, progress: Progress = silent
) -> Selection:
    """Return the selection for `reference`: auto, containers, jvm, bootstrap=ADDRESS or recorded, with that version.

    A reference requested by name is returned without a check of the machine; its start reports what is
    missing. `make_image=False` keeps `auto` from pulling or building an image, which may take minutes.
    Raise `ValueError` for any other word.
    """
    if reference == "auto":
        return _best(version, make_image=make_image, progress=progress)
    if reference.startswith(BOOTSTRAP_PREFIX):
        address = reference.removeprefix(BOOTSTRAP_PREFIX)
        if ":" not in address:
            raise ValueError(f"--reference {reference}: give HOST:PORT after bootstrap=")
        return Selection(ReferenceKind.BOOTSTRAP, "as requested", address)
    if reference in {ReferenceKind.CONTAINERS, ReferenceKind.JVM, ReferenceKind.RECORDED}:
        return Selection(ReferenceKind(reference), "as requested", version=version)
    raise ValueError(f"--reference {reference}: choose auto, containers, jvm, bootstrap=HOST:PORT or recorded")


def kafka_in_containers(configs: Mapping[str, str]) -> ReferenceCluster:
    """Return a cluster with these configurations, not started yet, for tests of users' applications.

    pytest's option `--kafka-containers` finds this function by its entry point. Raise
    `ReferenceUnavailableError` like `Selection.cluster`.
    """
    selection = Selection(ReferenceKind.CONTAINERS, "as requested")
    return selection.cluster(configs, progress=to_stderr)


def _best(version: str, *, make_image: bool, progress: Progress) -> Selection:
    try:
        image = _usable_image(version, make_image=make_image, progress=progress)
    except ReferenceUnavailableError as error:
        without_docker = str(error)
    else:
        return Selection(ReferenceKind.CONTAINERS, f"Docker runs {image}", version=version)
    try:
        java = _usable_java(version, progress)
    except ReferenceUnavailableError as error:
        return Selection(ReferenceKind.RECORDED, f"{without_docker}; {error}", version=version)
    return Selection(ReferenceKind.JVM, f"{without_docker}; so by {java}", version=version)


def _usable_image(version: str, *, make_image: bool, progress: Progress) -> str:
    with _installed():
        from broker_sim_integration.reference.docker_daemon import connect_docker
        from broker_sim_integration.reference.image import find_image, find_or_make_image
    if make_image:
        return find_or_make_image(version, progress=progress)
    with closing(connect_docker()) as client:
        image = find_image(client, version)
    if image is None:
        raise ReferenceUnavailableError(
            "Docker has no image of Kafka: python -m broker_sim_integration.reference.image"
        )
    return image


def _usable_java(version: str, progress: Progress) -> str:
    with _installed():
        from broker_sim_integration.reference.clusters.jvm import find_java
    java = find_java()
    kafka_jars(version=version, progress=progress)
    return java


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as missing:
        raise ReferenceUnavailableError(f"{missing.name} is not installed: pip install broker-sim-compare") from missing

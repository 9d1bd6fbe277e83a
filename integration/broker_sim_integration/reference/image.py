"""The image of the containers: the official one, or one that is built here without a registry.

Run `python -m broker_sim_integration.reference.image` to find or build it and print its name. In this order:
`$KAFKA_IMAGE`; the official image if Docker has it; the image built here before; the official image
pulled; a build of a minimal Debian with a JRE (debootstrap), Kafka's jars (Maven) and an entry point
that supports the environment of the official image.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from docker.errors import DockerException, ImageNotFound

from broker_sim_integration.reference.cache import exclusive
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import KAFKA_VERSION
from broker_sim_integration.reference.progress import Progress, silent, to_stderr
from broker_sim_integration.reference.root_filesystem import NODE_FILES, PACKAGES, packed_root_filesystem

if TYPE_CHECKING:
    from collections.abc import Iterator

    import docker

OFFICIAL_REPOSITORY = "apache/kafka"
BUILT_REPOSITORY = "broker-sim/kafka"
RECIPE_LABEL = "broker-sim.recipe"
MAKE_TIMEOUT_S = 1_200


def find_image(client: docker.DockerClient, version: str = KAFKA_VERSION) -> str | None:
    """Return the name of an image that Docker already has, or None if there is none.

    Raise `ReferenceUnavailableError` if Docker does not have the image in `$KAFKA_IMAGE`.
    """
    configured = os.environ.get("KAFKA_IMAGE")
    if configured:
        if image_labels(client, configured) is None:
            raise ReferenceUnavailableError(
                f"Docker has no image {configured}: docker pull {configured}, or unset KAFKA_IMAGE"
            )
        return configured
    official = f"{OFFICIAL_REPOSITORY}:{version}"
    if image_labels(client, official) is not None:
        return official
    built = f"{BUILT_REPOSITORY}:{version}"
    labels = image_labels(client, built)
    if labels is not None and labels.get(RECIPE_LABEL) == _recipe():
        return built
    return None


def find_or_make_image(version: str = KAFKA_VERSION, *, progress: Progress = silent) -> str:
    """Return the name of an image that Docker has; pull or build it first if necessary.

    Raise `ReferenceUnavailableError` if Docker does not respond, or if the image can neither be pulled nor
    be built.
    """
    with closing(connect_docker()) as client:
        image = find_image(client, version)
        if image is not None:
            return image
        with exclusive(f"kafka-image-{version}", timeout_s=MAKE_TIMEOUT_S, progress=progress):
            return find_image(client, version) or _make_image(client, version, progress)


def _make_image(client: docker.DockerClient, version: str, progress: Progress) -> str:
    official = f"{OFFICIAL_REPOSITORY}:{version}"
    progress(f"pulling {official}")
    try:
        client.images.pull(OFFICIAL_REPOSITORY, tag=version)
    except (DockerException, OSError) as error:
        reason = getattr(error, "explanation", None) or error
        progress(f"the image cannot be pulled and is built here: {reason}")
        return _build_image(client, version, progress)
    return official


def _build_image(client: docker.DockerClient, version: str, progress: Progress) -> str:
    changes = ['CMD ["/opt/kafka/entrypoint"]', "ENV LANG=C.UTF-8", "EXPOSE 9092", f"LABEL {RECIPE_LABEL}={_recipe()}"]
    name = f"{BUILT_REPOSITORY}:{version}"
    with packed_root_filesystem(version, progress) as chunks:
        import_image(client, chunks, name, changes, progress)
    return name


def import_image(
    client: docker.DockerClient, chunks: Iterator[bytes], name: str, changes: list[str], progress: Progress
) -> None:
    """Import a packed root file system as a Docker image; `changes` are lines of a Dockerfile."""
    progress(f"importing {name}")
    repository, _, tag = name.partition(":")
    answer = client.api.import_image_from_stream(chunks, repository=repository, tag=tag, changes=changes)
    last = json.loads(str(answer).strip().splitlines()[-1])
    if "error" in last:
        raise ReferenceUnavailableError(f"Docker cannot import the image: {last['error']}")


def image_labels(client: docker.DockerClient, name: str) -> dict[str, str] | None:
    """Return the labels of an image, or None if Docker does not have it."""
    try:
        return dict(client.images.get(name).labels or {})
    except ImageNotFound:
        return None


def _recipe() -> str:
    """Return a hash of the image's sources: an image of older sources is rebuilt."""
    digest = hashlib.sha256(",".join(PACKAGES).encode())
    for file in sorted(NODE_FILES.iterdir()):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_make_image(progress=to_stderr)}\n")
    except ReferenceUnavailableError as unavailable:
        sys.exit(str(unavailable))

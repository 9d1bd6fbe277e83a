"""A base image for the Dockerfile if no registry can be reached: minimal Debian with Python.

Run `python -m broker_sim_integration.reference.python_image` to find or build it and print its name, for
`docker build --build-arg PYTHON_IMAGE=...` and for `PYTHON_IMAGE` of docker-compose.yml. In this order:
`$PYTHON_IMAGE`; the Dockerfile's own if Docker has it; the one built here before; the Dockerfile's
own pulled; a build by debootstrap. It trusts the certificates that this machine trusts.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docker.errors import DockerException

from broker_sim_integration.reference.cache import exclusive
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.image import MAKE_TIMEOUT_S, image_labels, import_image
from broker_sim_integration.reference.progress import Progress, silent, to_stderr
from broker_sim_integration.reference.root_filesystem import packed_debian

if TYPE_CHECKING:
    import docker

OFFICIAL: Final = "python:3.11-slim"
BUILT: Final = "broker-sim/python:debian"
PACKAGES: Final = ("python3-venv", "ca-certificates")
CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")


def find_or_make_python_image(*, progress: Progress = silent) -> str:
    """Return the name of an image that Docker has; pull or build it first if necessary.

    Raise `ReferenceUnavailableError` if Docker does not respond, or if the image can neither be pulled nor
    be built.
    """
    with closing(connect_docker()) as client:
        for name in filter(None, (os.environ.get("PYTHON_IMAGE"), OFFICIAL, BUILT)):
            if image_labels(client, name) is not None:
                return name
        with exclusive("python-image", timeout_s=MAKE_TIMEOUT_S, progress=progress):
            return BUILT if image_labels(client, BUILT) is not None else _make(client, progress)


def _make(client: docker.DockerClient, progress: Progress) -> str:
    progress(f"pulling {OFFICIAL}")
    try:
        client.images.pull(OFFICIAL)
    except (DockerException, OSError) as error:
        reason = getattr(error, "explanation", None) or error
        progress(f"the image cannot be pulled and is built here: {reason}")
        with packed_debian(PACKAGES, _trust_what_is_trusted_here, progress) as chunks:
            # By default the pip of a virtual environment uses only its own certificates.
            changes = ["ENV LANG=C.UTF-8", f"ENV PIP_CERT={CERTIFICATES}"]
            import_image(client, chunks, BUILT, changes, progress)
        return BUILT
    return OFFICIAL


def _trust_what_is_trusted_here(root: Path) -> None:
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / CERTIFICATES.relative_to("/"))


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_make_python_image(progress=to_stderr)}\n")
    except ReferenceUnavailableError as unavailable:
        sys.exit(str(unavailable))

"""Whether Docker can be used here, and what to do when it cannot, in one line."""

from __future__ import annotations

import os
import socket

import docker
from docker.errors import DockerException

from broker_sim_integration.reference.errors import ReferenceUnavailableError

UNIX_PREFIX = "unix://"
DEFAULT_HOST = "unix:///var/run/docker.sock"
REQUEST_TIMEOUT_S = 60
CONNECT_TIMEOUT_S = 5


def connect_docker() -> docker.DockerClient:
    """Return a client of the Docker daemon that answers now; the caller closes it.

    Honours `DOCKER_HOST`. Raises `ReferenceUnavailableError` with the remedy when no daemon
    answers.
    """
    host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    if host.startswith(UNIX_PREFIX):
        _check_socket(host.removeprefix(UNIX_PREFIX))
    try:
        client = docker.from_env(timeout=REQUEST_TIMEOUT_S)
        client.ping()
    except (DockerException, OSError) as error:
        raise ReferenceUnavailableError(f"Docker does not answer at {host}: {error}") from error
    return client


def _check_socket(path: str) -> None:
    """Find out why there is no connection; Docker's own client hides the reason."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(CONNECT_TIMEOUT_S)
        try:
            probe.connect(path)
        except PermissionError as error:
            raise ReferenceUnavailableError(
                "Docker refuses this user: add the user to the group docker, or run as root"
            ) from error
        except OSError as error:
            raise ReferenceUnavailableError(
                "Docker does not run: apt-get install -y --no-install-recommends docker.io "
                "iptables, then start dockerd (after a crash remove /var/run/docker.pid first)"
            ) from error

"""Whether Docker can be used here, and otherwise the remedy, in one line."""

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
    """Return a client of the Docker daemon, which responds; the caller closes it.

    Honours `DOCKER_HOST`. Raise `ReferenceUnavailableError` with the remedy if no daemon responds.
    """
    host = os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    if host.startswith(UNIX_PREFIX):
        _check_socket(host.removeprefix(UNIX_PREFIX))
    try:
        client = docker.from_env(timeout=REQUEST_TIMEOUT_S)
        client.ping()
    except (DockerException, OSError) as error:
        raise ReferenceUnavailableError(f"Docker does not respond at {host}: {error}") from error
    return client


def _check_socket(path: str) -> None:
    """Raise an error with the reason why there is no connection; Docker's own client hides it."""
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

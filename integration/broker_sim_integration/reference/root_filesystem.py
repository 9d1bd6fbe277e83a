"""The root file systems of images that are built without a registry: minimal Debian, and additions.

Needs root and debootstrap. The packages come from the mirror of this machine's own apt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim_integration.reference.cache import cache_directory
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import kafka_jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim_integration.reference.progress import Progress

PACKAGES = ("default-jre-headless", "iproute2")
"""A JRE (17 or newer since Debian 12), and `ip`, which disconnects a broker from the others."""

NODE_FILES = Path(__file__).with_name("node_files")
NOT_NEEDED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/lib/apt/lists")
CHUNK_BYTES = 1 << 20
DEBOOTSTRAP_TIMEOUT_S = 900
COMMAND_TIMEOUT_S = 60


@contextmanager
def packed_root_filesystem(version: str, progress: Progress) -> Iterator[Iterator[bytes]]:
    """Yield the chunks of a tar archive of the root file system with a JRE and Kafka `version`.

    Raise `ReferenceUnavailableError` like `packed_debian`.
    """
    jars = kafka_jars(version=version, progress=progress)
    with packed_debian(PACKAGES, lambda root: _add_kafka(root, jars), progress) as chunks:
        yield chunks


@contextmanager
def packed_debian(
    packages: tuple[str, ...], prepare: Callable[[Path], None], progress: Progress
) -> Iterator[Iterator[bytes]]:
    """Yield the chunks of a tar archive of a Debian with `packages`, after `prepare(directory)`.

    Raise `ReferenceUnavailableError`, with the remedy, if this machine cannot build it. All files are
    removed at the end.
    """
    debootstrap = shutil.which("debootstrap")
    if debootstrap is None:
        raise ReferenceUnavailableError(
            "debootstrap is missing: apt-get install -y --no-install-recommends debootstrap"
        )
    if os.geteuid() != 0:
        raise ReferenceUnavailableError("debootstrap needs root: run as root, or name an image")
    root = Path(tempfile.mkdtemp(prefix=".image-", dir=cache_directory()))
    try:
        root.chmod(0o755)
        progress(f"installing Debian with {' and '.join(packages)} by debootstrap, about a minute")
        _install_debian(debootstrap, root, packages)
        prepare(root)
        _remove_what_is_not_needed(root)
        yield _pack(root)
    finally:
        _unmount_below(root)
        shutil.rmtree(root, ignore_errors=True)


def _install_debian(debootstrap: str, root: Path, packages: tuple[str, ...]) -> None:
    mirror, codename = _debian_mirror()
    command = [debootstrap, "--variant=minbase", f"--include={','.join(packages)}"]
    try:
        done = subprocess.run(  # noqa: S603 - the mirror is the one that this machine's apt trusts
            [*command, codename, str(root), mirror],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEBOOTSTRAP_TIMEOUT_S,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise ReferenceUnavailableError(f"debootstrap took more than {DEBOOTSTRAP_TIMEOUT_S} s; try again") from expired
    if done.returncode != 0:
        last = done.stdout.strip().splitlines()[-1:]
        raise ReferenceUnavailableError(f"debootstrap failed: {last[0] if last else 'no output'}")


def _debian_mirror() -> tuple[str, str]:
    """Return the address and the codename of the Debian mirror that apt uses on this machine."""
    codename = ""
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            codename = line.partition("=")[2].strip('"')
    targets = subprocess.run(
        [  # noqa: S607 - apt is where the system has it
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)",
            "Identifier: Packages",
        ],
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    for line in targets.stdout.splitlines():
        address, _, rest = line.partition(" ")
        if rest == f"{codename} main Debian":
            return address.rstrip("/"), codename
    raise ReferenceUnavailableError("apt has no Debian mirror here: run apt-get update, or use an image that exists")


def _add_kafka(root: Path, jars: Path) -> None:
    home = root / "opt" / "kafka"
    shutil.copytree(jars, home / "libs")
    config = home / "config"
    config.mkdir()
    shutil.copy(NODE_FILES / "log4j2.xml", config)
    entrypoint = home / "entrypoint"
    shutil.copy(NODE_FILES / "entrypoint", entrypoint)
    entrypoint.chmod(0o755)


def _remove_what_is_not_needed(root: Path) -> None:
    for package in (root / "var" / "cache" / "apt").rglob("*.deb"):
        package.unlink()
    for directory in NOT_NEEDED:
        shutil.rmtree(root / directory, ignore_errors=True)


def _pack(root: Path) -> Iterator[bytes]:
    with subprocess.Popen(  # noqa: S603 - our own directory
        ["tar", "-C", str(root), "--one-file-system", "-c", "."],  # noqa: S607 - tar is in the path
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as tar:
        assert tar.stdout is not None
        while chunk := tar.stdout.read(CHUNK_BYTES):
            yield chunk
    if tar.returncode != 0:
        raise ReferenceUnavailableError(f"tar ended with exit code {tar.returncode}; free some disk space")


def _unmount_below(root: Path) -> None:
    """Unmount the leftovers of an interrupted debootstrap, so that nothing outside `root` is removed."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    points = [line.split(" ")[1] for line in mounts]
    for point in reversed([point for point in points if point.startswith(f"{root}/")]):
        subprocess.run(  # noqa: S603 - a path of our own
            ["umount", "--lazy", point],  # noqa: S607 - umount is where the system has it
            timeout=COMMAND_TIMEOUT_S,
            check=True,
        )

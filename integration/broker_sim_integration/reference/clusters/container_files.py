"""The files of brokers in stopped containers, copied in and out as tar archives."""

from __future__ import annotations

import io
import tarfile
from contextlib import closing
from typing import TYPE_CHECKING

from broker_sim_integration.reference.docker_daemon import connect_docker

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker.models.containers import Container


class ContainerFiles:
    """`BrokerFiles` in a volume of each container."""

    def __init__(self, container_of: Callable[[int], Container], directory: str) -> None:
        """`directory` is the volume that contains the broker's log directory."""
        self._container_of = container_of
        self._directory = directory

    def names(self, broker: int, directory: str = "") -> list[str]:
        """Return the sorted names in the directory."""
        with self._archive(broker, directory) as archive:
            paths = [name.split("/") for name in archive.getnames()]
        return sorted(parts[1] for parts in paths if len(parts) == 2)

    def read(self, broker: int, path: str) -> bytes:
        """Return the content of a file."""
        with self._archive(broker, path) as archive:
            file = archive.extractfile(archive.getmembers()[0])
            assert file is not None, f"{path} is no file"
            return file.read()

    def write(self, broker: int, path: str, content: bytes) -> None:
        """Write a file; a missing directory is created."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            directory, _, _ = path.rpartition("/")
            if directory:
                parent = tarfile.TarInfo(directory)
                parent.type, parent.mode = tarfile.DIRTYPE, 0o777
                archive.addfile(parent)
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o666
            archive.addfile(info, io.BytesIO(content))
        assert self._container_of(broker).put_archive(self._directory, packed.getvalue())

    def remove(self, broker: int, path: str) -> None:
        """Remove a file, or a directory with its content, by means of another container."""
        container = self._container_of(broker)
        with closing(connect_docker()) as client:
            client.containers.run(
                container.image.id,
                entrypoint=["rm", "-r", f"{self._directory}/{path}"],
                volumes_from=[container.id],
                user="0",
                remove=True,
                network_mode="none",
            )

    def _archive(self, broker: int, path: str) -> tarfile.TarFile:
        chunks, _ = self._container_of(broker).get_archive(f"{self._directory}/{path}".rstrip("/"))
        return tarfile.open(fileobj=io.BytesIO(b"".join(chunks)))

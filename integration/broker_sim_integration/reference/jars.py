"""Kafka's jars, fetched by Maven, for local brokers, the image and the codec's cross-checks.

Run `python -m broker_sim_integration.reference.jars` to fetch them and print their directory.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from broker_sim.protocol.release import DEFAULT_RELEASE
from broker_sim_integration.reference.cache import cached_directory
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.progress import Progress, silent, to_stderr

if TYPE_CHECKING:
    from pathlib import Path

KAFKA_VERSIONS: Final = MappingProxyType({"4.3": "4.3.1", "4.4": "4.4.0"})
"""The compared version of Kafka, by release."""
KAFKA_VERSION: Final = KAFKA_VERSIONS[DEFAULT_RELEASE]
"""The version of the default release of a simulated cluster."""


def release_of(version: str) -> str:
    """Return the release of a version, such as 4.4 for 4.4.0."""
    return ".".join(version.split(".")[:2])


BROKER = "kafka_2.13"
"""The artifact of the broker."""

LOG4J_VERSION = "2.25.4"
MAVEN_TIMEOUT_S = 600

# Kafka logs through slf4j; log4j-slf4j-impl forwards that to log4j2, a dependency of Kafka.
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>broker-sim</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{artifacts}
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>{log4j_version}</version>
    </dependency>
  </dependencies>
</project>
"""
ARTIFACT = """\
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{kafka_version}</version>
    </dependency>"""


def kafka_jars(*artifacts: str, version: str = KAFKA_VERSION, progress: Progress = silent) -> Path:
    """Return the directory of the jars of Kafka's `artifacts` and of their dependencies.

    The default is the broker's artifact; others are `kafka-tools` and `kafka-streams`, for example. Maven
    fetches them once. Any number of callers, in any process, may call it at the same time. Raise
    `ReferenceUnavailableError` if Maven is missing or cannot fetch them.
    """
    names = artifacts or (BROKER,)
    name = "kafka" if names == (BROKER,) else "-".join(names)

    def fetch(directory: Path) -> None:
        progress(f"fetching the jars of Kafka {version} by Maven: {', '.join(names)}")
        _copy_dependencies(names, version, directory)

    return cached_directory(f"{name}-jars-{version}", fetch, timeout_s=MAVEN_TIMEOUT_S, progress=progress)


def _copy_dependencies(artifacts: tuple[str, ...], version: str, directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ReferenceUnavailableError("Maven is missing: apt-get install -y --no-install-recommends maven")
    pom = directory / "pom.xml"
    dependencies = [ARTIFACT.format(artifact=artifact, kafka_version=version) for artifact in artifacts]
    text = POM.format(artifacts="\n".join(dependencies), log4j_version=LOG4J_VERSION)
    pom.write_text(text, encoding="utf-8")
    command = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
    try:
        done = subprocess.run(  # noqa: S603 - the command is made of constants and our own paths
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MAVEN_TIMEOUT_S,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        raise ReferenceUnavailableError(
            f"Maven took more than {MAVEN_TIMEOUT_S} s to fetch Kafka {version}; try again"
        ) from expired
    pom.unlink()
    if done.returncode != 0 or not any(directory.glob(f"kafka-clients-{version}.jar")):
        reasons = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
        reason = reasons[0].removeprefix("[ERROR] ") if reasons else f"exit code {done.returncode}"
        raise ReferenceUnavailableError(f"Maven cannot fetch Kafka {version}: {reason}")


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{kafka_jars(progress=to_stderr)}\n")
    except ReferenceUnavailableError as unavailable:
        sys.exit(str(unavailable))

"""kafka-python's own tests of ACLs, SASL and TLS pass against simulated brokers."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytestmark = pytest.mark.soak(part="clients")

RELEASE = "3.0.12"
HERE = Path(__file__).parent
LOGIN_TESTS = ("test_admin", "test_client", "test_produce_and_consume")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
NAMED = {
    "test_create_describe_delete_acls",
    *(f"{test}[{mechanism}]" for test in LOGIN_TESTS for mechanism in MECHANISMS),
    "test_ssl_handshake",
    "test_legacy_kafka_client_ssl",
}
DOWNLOAD_TIMEOUT_S = 900
TIMEOUT_S = 600


@pytest.fixture
def sources(package_index, tmp_path):
    """Return the directory with what the release's archive has, and the two modules that it lacks."""
    package = f"kafka-python=={RELEASE}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run(
        [*pip, "--no-binary", "kafka-python", "--dest", tmp_path, package], check=True, timeout=DOWNLOAD_TIMEOUT_S
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (unpacked / "test" / "__init__.py").touch()
    # Of these two their fixtures make a child process, which simulated brokers have no need of.
    (unpacked / "test" / "service.py").write_text("ExternalService = SpawnedService = None\n")
    return unpacked


def passed_in(report):
    """Return the names of the tests that have passed, by a report in JUnit's form."""
    return {case.get("name") for case in ET.parse(report).iter("testcase") if len(case) == 0}


def test_kafka_pythons_own_tests_pass(sources, tmp_path):
    report = tmp_path / "report.xml"
    places = [str(sources), str(HERE), os.environ.get("PYTHONPATH", "")]
    pytest_words = ["-m", "pytest", "-q", "-p", "simulated_kafka", "--override-ini=addopts="]
    chosen = [f"--junit-xml={report}", "-k", "sasl or ssl or acls", "test/integration"]
    done = subprocess.run(
        [sys.executable, *pytest_words, *chosen],
        cwd=sources,
        env={
            **os.environ,
            "KAFKA_VERSION": "4.3.1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, places)),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert report.exists(), done.stdout
    assert NAMED - passed_in(report) == set(), done.stdout
    assert done.returncode == 0, done.stdout

"""What is installed from the wheel of broker-sim works: on this Python, in the soak on every Python of this machine.

In the soak it works with each extra alone on the oldest and the newest of them, too.
"""

import json
import runpy
import signal
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.install

ROOT = Path(__file__).parents[2]
PYTHONS = runpy.run_path(str(ROOT / "tools" / "pythons.py"))["find_pythons"]()
EXTRAS = ("", "compression", "fast", "metrics", "parquet")
THIS_PYTHON = sys.version_info[:2]
in_soak = pytest.mark.soak(part="wheels")
CASES = [
    pytest.param(
        (version, extra),
        id=f"{version[0]}.{version[1]}-{extra or 'plain'}",
        marks=[in_soak] * ((version, extra) != (THIS_PYTHON, "")),
    )
    for version in PYTHONS
    for extra in (EXTRAS if version in {min(PYTHONS), max(PYTHONS)} else ("",))
]
SNAPPY = """
from broker_sim.protocol.compression import CompressionCodec, compress
print(len(compress(CompressionCodec.SNAPPY, b"x" * 1000)))
"""


@pytest.fixture(scope="module")
def environments(install, wheel, tmp_path_factory):
    """Return a function that gives the environment of a version, without any extra."""
    return cache(lambda version: install(tmp_path_factory.mktemp("plain"), PYTHONS[version], wheel))


@pytest.fixture(scope="module", params=CASES)
def installed(request, environments, wheel):
    """Return the environment and the extra that is in it."""
    version, extra = request.param
    environment = environments(version)
    plain = environment.packages()
    if extra:
        environment.add(f"broker-sim[{extra}] @ {wheel.as_uri()}")
    yield SimpleNamespace(environment=environment, extra=extra)
    environment.remove(*(environment.packages() - plain))


@pytest.fixture(scope="module")
def cluster(installed):
    """Start `broker-sim run`; returns its environment, its extra and what it has printed."""
    process = installed.environment.start("broker-sim", "run", "--brokers", 1, "--topic", "orders")
    try:
        ready = json.loads(process.stdout.readline())
        yield SimpleNamespace(**vars(installed), **ready)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def only_line(done, code):
    """Return what a command says before it ends with that exit code: one line on stderr."""
    assert (done.returncode, done.stdout) == (code, "")
    (line,) = done.stderr.splitlines()
    return line


def test_wheel_has_the_simulator_and_nothing_of_the_comparison(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "broker_sim",
        "broker_sim_purgatory",
        "broker_sim-0.1.0.dist-info",
    }
    assert not [name for name in names if "integration" in name or "/recorded/" in name]
    assert wheel.name == "broker_sim-0.1.0-py3-none-any.whl"


def test_every_file_is_that_of_the_repository(wheel):
    archive = zipfile.ZipFile(wheel)
    roots = {"broker_sim": ROOT, "broker_sim_purgatory": ROOT / "purgatory"}
    files = {name: roots.get(name.partition("/")[0]) for name in archive.namelist()}
    altered = [name for name, root in files.items() if root and archive.read(name) != (root / name).read_bytes()]
    assert altered == []


def test_wheel_is_small_where_it_is_installed(wheel):
    sizes = [info.file_size for info in zipfile.ZipFile(wheel).infolist()]
    assert sum(sizes) < 5_130_000
    assert wheel.stat().st_size < 1_660_000


def test_purgatory_alone_has_the_same_files_and_needs_the_standard_library_only(wheel, build_wheel, tmp_path):
    alone = build_wheel(tmp_path, ROOT / "purgatory")
    archive, whole = zipfile.ZipFile(alone), zipfile.ZipFile(wheel)
    files = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert files == [name for name in whole.namelist() if name.startswith("broker_sim_purgatory/")]
    assert [name for name in files if archive.read(name) != whole.read(name)] == []
    metadata = archive.read("broker_sim_purgatory-0.1.0.dist-info/METADATA").decode()
    assert "Requires-Dist" not in metadata
    example = metadata.partition("```python\n")[2].partition("```")[0]
    program = f"import sys\nsys.path.insert(0, {str(alone)!r})\n{example}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


def test_packages_of_the_user_stay_what_they_are(installed):
    program = (
        "import broker_sim, broker_sim.purgatory, integration, purgatory;"
        "print(integration.OWNER, purgatory.__name__, hasattr(purgatory, 'SystemTimer'),"
        " broker_sim.purgatory.compiled, broker_sim.ParkedOperation is broker_sim.purgatory.ParkedOperation)"
    )
    done = installed.environment.run("python", "-c", program)
    assert (done.stdout, done.stderr) == ("the user purgatory False False True\n", "")


def test_tests_of_the_user_pass_beside_the_plugin(installed):
    done = installed.environment.run("python", "-m", "pytest", "-q", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("3 passed")


def test_suite_of_an_application_passes_on_two_workers(environments, run_suite):
    """In the soak all suites of the examples do, each in an environment of its own."""
    environment = environments(THIS_PYTHON)
    plain = environment.packages()
    try:
        assert run_suite(environment, "aiokafka", "aiokafka", "anyio").startswith("26 passed")
    finally:
        environment.remove(*(environment.packages() - plain))


def test_real_kafka_of_the_plugin_names_what_is_missing(installed):
    options = ("--kafka-containers", "-k", "real_time")
    done = installed.environment.run("python", "-m", "pytest", "-q", *options)
    assert done.returncode == 1
    expected = "the package that starts the containers is not installed: pip install ./integration"
    assert f"--kafka-containers: {expected}" in done.stdout


def test_a_cluster_runs_and_answers(cluster):
    done = cluster.environment.run("broker-sim", "ctl", "--control", cluster.control, "status")
    assert done.returncode == 0, done.stderr
    assert "orders" in done.stdout


def test_metrics_are_there_or_name_their_extra(cluster):
    done = cluster.environment.run("broker-sim", "ctl", "--control", cluster.control, "metrics")
    if cluster.extra == "metrics":
        assert "kafka_server_delayedoperationpurgatory" in done.stdout
    else:
        assert only_line(done, 1).endswith("pip install 'broker-sim[metrics]'")


def test_a_parquet_trace_is_written_or_names_its_extra(installed, tmp_path):
    program = (
        "import broker_sim\n"
        f"with broker_sim.Cluster(1, topics=['t'], trace={str(tmp_path / 't.parquet')!r}) as kafka:\n"
        "    kafka.produce('t', 'x')\n"
    )
    done = installed.environment.run("python", "-c", program)
    if installed.extra == "parquet":
        assert (done.returncode, done.stderr) == (0, "")
        assert list((tmp_path / "t.parquet").glob("trace-*.parquet"))
    else:
        assert done.returncode == 1
        assert done.stderr.endswith("MissingExtraError: pyarrow is not installed: pip install 'broker-sim[parquet]'\n")


def test_its_one_command_has_help_without_any_extra(installed):
    done = installed.environment.run("broker-sim", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")
    commands = (installed.environment.directory / "bin").glob("broker-sim*")
    assert [path.name for path in commands] == ["broker-sim"]


def test_compressed_records_are_read_or_name_their_extra(installed):
    done = installed.environment.run("python", "-c", SNAPPY)
    if installed.extra == "compression":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.stderr.splitlines()[-1].endswith("pip install 'broker-sim[compression]'")


def test_the_extra_fast_brings_another_event_loop(installed):
    program = (
        "from broker_sim.runtime.scheduler import new_event_loop;"
        "loop = new_event_loop(); print(type(loop).__mro__[1].__module__); loop.close()"
    )
    done = installed.environment.run("python", "-c", program)
    assert done.stdout.startswith("uvloop" if installed.extra == "fast" else "asyncio")


@in_soak
def test_the_native_wheel_has_a_native_purgatory(install, native_wheel, tmp_path):
    environment = install(tmp_path, sys.executable, native_wheel)
    program = (
        "import broker_sim.purgatory, broker_sim_purgatory.timer_task as task;"
        "print(broker_sim.purgatory.compiled, task.__file__.endswith('.py'))"
    )
    assert environment.run("python", "-c", program).stdout == "True False\n"
    done = environment.run("python", "-m", "pytest", "-q", "-W", "error")
    assert done.returncode == 0, done.stdout
    process = environment.start("broker-sim", "run", "--brokers", 3, "--topic", "orders:1:3")
    assert json.loads(process.stdout.readline())["pid"] == process.pid
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0

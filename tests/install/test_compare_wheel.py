"""What is installed from the wheel of broker-sim-compare works, beside the wheel of broker-sim.

On this Python, and in the soak on the oldest and the newest of this machine, too.
"""

import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

pytestmark = pytest.mark.install

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "integration" / "broker_sim_integration" / "reference" / "recorded" / "4.4"
PYTHONS = runpy.run_path(str(ROOT / "tools" / "pythons.py"))["find_pythons"]()
THIS_PYTHON = sys.version_info[:2]
in_soak = pytest.mark.soak(part="wheels")
CASES = [
    pytest.param(version, id=f"{version[0]}.{version[1]}", marks=[in_soak] * (version != THIS_PYTHON))
    for version in sorted({min(PYTHONS), THIS_PYTHON, max(PYTHONS)})
]


@pytest.fixture(scope="module", params=CASES)
def installed(request, install, wheel, compare_wheel, tmp_path_factory):
    """Return an environment with both wheels."""
    directory = tmp_path_factory.mktemp("compare")
    return install(directory, PYTHONS[request.param], wheel, compare_wheel)


def test_wheel_has_one_package(compare_wheel):
    names = {name.partition("/")[0] for name in zipfile.ZipFile(compare_wheel).namelist()}
    assert names == {"broker_sim_integration", "broker_sim_compare-0.1.0.dist-info"}
    assert compare_wheel.name == "broker_sim_compare-0.1.0-py3-none-any.whl"


def test_every_file_is_that_of_the_repository(compare_wheel):
    archive = zipfile.ZipFile(compare_wheel)
    files = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert "broker_sim_integration/comparison/differences.md" in files
    assert [name for name in files if archive.read(name) != (ROOT / "integration" / name).read_bytes()] == []


def test_wheel_is_small_where_it_is_installed(compare_wheel):
    assert sum(info.file_size for info in zipfile.ZipFile(compare_wheel).infolist()) < 11_000_000
    assert compare_wheel.stat().st_size < 1_200_000


def test_commands_have_help_and_everything_required_is_installed(installed):
    installed.check()
    for command in ("broker-sim-compare", "broker-sim-pipeline"):
        done = installed.run(command, "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: ")


def test_comparison_with_the_recording_passes(installed):
    done = installed.run(
        *("broker-sim-compare", "--reference", "recorded"), *("--scenario", "acks_1_is_answered_at_once")
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_recording_fits_the_scenarios_as_in_the_repository(installed):
    program = "from broker_sim_integration.cli import main; main()"
    here = subprocess.run(
        [sys.executable, "-c", program, "drift", RECORDING], cwd=ROOT, capture_output=True, text=True, check=False
    )
    done = installed.run("broker-sim-compare", "drift", RECORDING)
    assert (done.returncode, done.stderr) == (here.returncode, here.stderr)
    assert done.returncode == 0


def test_job_of_the_pipeline_names_its_extra(installed):
    done = installed.run(*("broker-sim-pipeline", "ingest", "--input", "x", "--output", "y"))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.endswith("pip install 'broker-sim-compare[spark]'")


def test_tests_of_a_user_pass_beside_it(installed):
    done = installed.run("python", "-m", "pytest", "-q", "-W", "error")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("3 passed")


def test_real_kafka_of_the_plugin_is_found(installed):
    program = (
        "import os, pytest; os.environ['DOCKER_HOST'] = 'unix:///no/docker';"
        "raise SystemExit(pytest.main(['-q', '--kafka-containers', '-k', 'real_time']))"
    )
    done = installed.run("python", "-c", program)
    assert done.returncode == 1
    assert "--kafka-containers: Docker does not run: apt-get install" in done.stdout


def test_uninstalling_one_leaves_the_files_of_the_other(wheel, compare_wheel):
    both = [set(zipfile.ZipFile(path).namelist()) for path in (wheel, compare_wheel)]
    assert both[0].isdisjoint(both[1])


@in_soak
@pytest.mark.parametrize("project", [".", "integration"])
def test_source_distribution_builds_the_same_wheel(request, install, build_wheel, tmp_path, project):
    built = request.getfixturevalue("compare_wheel" if project == "integration" else "wheel")
    environment = install(tmp_path / "environment", sys.executable, "hatchling")
    done = replace(environment, project=ROOT / project).run(
        *("python", "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path)
    )
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    again = zipfile.ZipFile(build_wheel(tmp_path, archive))
    first = zipfile.ZipFile(built)
    assert {name: again.read(name) for name in again.namelist()} == {
        name: first.read(name) for name in first.namelist()
    }


@in_soak
def test_spark_runs_the_simulation_of_a_wheel(install, wheel, compare_wheel, tmp_path):
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: apt-get install -y openjdk-17-jre-headless")
    spark = f"broker-sim-compare[spark] @ {compare_wheel.as_uri()}"
    environment = install(tmp_path, next(iter(PYTHONS.values())), wheel, spark)
    done = environment.run(
        *("broker-sim-pipeline", "sweep", "--sample", 1, "--repeats", 1, "--tasks", 1),
        *("--master", "local[1]", "--output", "tables"),
    )
    assert done.returncode == 0, done.stderr
    assert (environment.project / "tables" / "sweep_summary").is_dir()

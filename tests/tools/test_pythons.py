"""The Pythons of a machine are found, and none that is too old or does not run."""

import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def pythons(monkeypatch, tmp_path):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return runpy.run_path(str(ROOT / "tools" / "pythons.py"))


@pytest.fixture
def find_pythons(pythons):
    return pythons["find_pythons"]


def program(path, version):
    """Write a program that says it is that version, where this Python would."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)


def test_one_program_of_each_version_is_found(find_pythons, tmp_path):
    program(tmp_path / "bin" / "python3.98", "3 98")
    program(tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python3.99", "3 99")
    program(tmp_path / "bin" / "python3.99", "3 99")
    program(tmp_path / "uv" / "cpython-3.97.0-linux-x86_64-gnu" / "bin" / "python3.97", "3 97")
    assert find_pythons() == {
        sys.version_info[:2]: Path(sys.executable),
        (3, 97): tmp_path / "uv" / "cpython-3.97.0-linux-x86_64-gnu" / "bin" / "python3.97",
        (3, 98): tmp_path / "bin" / "python3.98",
        (3, 99): tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python3.99",
    }


def test_what_is_too_old_or_does_not_run_is_left_out(find_pythons, tmp_path):
    program(tmp_path / "bin" / "python3.9", "3 9")
    program(tmp_path / "bin" / "python3.98", "no such version")
    (tmp_path / "bin" / "python3.98").write_text("#!/bin/sh\nexit 127\n")
    program(tmp_path / "bin" / "python3.99-config", "3 99")
    (tmp_path / "bin" / "python3.97").mkdir()
    assert list(find_pythons()) == [sys.version_info[:2]]


def test_uv_has_a_place_of_its_own_unless_it_is_told_another(find_pythons, monkeypatch, tmp_path):
    monkeypatch.delenv("UV_PYTHON_INSTALL_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    found = tmp_path / "data" / "uv" / "python" / "cpython-3.97.0-linux" / "bin" / "python3.97"
    program(found, "3 97")
    assert find_pythons()[3, 97] == found


def test_supported_versions_that_are_not_here_are_one_line_that_says_how_to_get_them(pythons):
    missing = pythons["missing"]
    supported = [(3, 11), (3, 12), (3, 13), (3, 14)]
    assert missing(supported) is None
    assert missing([*supported[:3], (3, 15)]) == (
        "not found here: Python 3.14; get it by: uv python install 3.14, or: pyenv install 3.14"
    )
    assert missing([]).startswith("not found here: Python 3.11 3.12 3.13 3.14; ")


def test_wheels_are_built_for_the_supported_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    prefix = "Programming Language :: Python :: 3."
    supported = [each.removeprefix(prefix) for each in project["project"]["classifiers"] if each.startswith(prefix)]
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in supported]


def test_the_comparison_is_for_the_same_versions(pythons):
    def versions(project):
        text = (ROOT / project / "pyproject.toml").read_text(encoding="utf-8")
        return sorted(pythons["CLASSIFIER"].findall(text))

    assert versions("integration") == versions(".")


def test_types_are_checked_for_the_newest_version(pythons):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    newest = makefile.partition("NEWEST_PYTHON := ")[2].split()[0]
    older = [(3, minor) for minor in range(11, int(newest.removeprefix("3.")))]
    assert pythons["missing"](older).startswith(f"not found here: Python {newest}; ")


def asked(*arguments, **environment):
    """Run the module; return what it prints."""
    return subprocess.run(
        [sys.executable, "-m", "tools.pythons", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_module_prints_versions_and_programs():
    version = "{}.{}".format(*sys.version_info)
    assert f"{version} {sys.executable}" in asked().stdout.splitlines()


def test_the_newest_one_can_be_had_alone(tmp_path):
    program(tmp_path / "bin" / "python3.98", "3 98")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert asked("newest", PATH=path).stdout == f"3.98 {tmp_path / 'bin' / 'python3.98'}\n"


def test_only_who_wants_all_is_told_what_is_missing(tmp_path):
    nowhere = dict.fromkeys(("PATH", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"), str(tmp_path))
    assert asked(**nowhere).stderr.startswith("not found here: Python 3.1")
    assert not asked("newest", **nowhere).stderr

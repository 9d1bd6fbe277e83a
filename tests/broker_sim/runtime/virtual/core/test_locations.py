"""What belongs to a library is told from where its file lies, and chance and reports follow from it."""

import asyncio
import json.decoder
import sys
import zipfile
from types import ModuleType

import aiokafka
import pytest

from broker_sim.runtime.virtual.core import locations
from broker_sim.runtime.virtual.core.locations import is_of_a_library


@pytest.fixture(autouse=True)
def _no_answers_of_other_tests():
    is_of_a_library.cache_clear()
    yield
    is_of_a_library.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def package(folder, name="client"):
    (folder / name).mkdir()
    file = folder / name / "__init__.py"
    file.write_text("")
    return str(file)


def test_modules_of_python_and_of_the_environment_are_libraries():
    assert is_of_a_library(asyncio.__file__)
    assert is_of_a_library(json.decoder.__file__)
    assert is_of_a_library(aiokafka.__file__)


def test_program_is_no_library(folder):
    assert not is_of_a_library(package(folder))
    assert not is_of_a_library(__file__)
    assert not is_of_a_library("<string>")


def test_standard_library_may_be_a_zip(folder, monkeypatch):
    monkeypatch.setattr(locations, "_STANDARD_LIBRARY", folder / "python314.zip")
    assert is_of_a_library(str(folder / "python314.zip" / "random.py"))


@pytest.mark.parametrize("name", ["packages.zip", "client-1.0-py3-none-any.whl"])
def test_packages_of_a_zip_or_a_wheel_are_libraries(folder, name):
    with zipfile.ZipFile(folder / name, "w") as file:
        file.writestr("client/__init__.py", "")
    assert is_of_a_library(str(folder / name / "client" / "__init__.py"))


def test_vendored_packages_with_their_metadata_are_libraries(folder):
    file = package(folder)
    (folder / "client-1.0.dist-info").mkdir()
    assert is_of_a_library(file)


def test_metadata_in_a_folder_from_which_nothing_is_imported_says_nothing(tmp_path):
    file = package(tmp_path)
    (tmp_path / "client-1.0.dist-info").mkdir()
    assert not is_of_a_library(file)


@pytest.mark.parametrize("name", ["aiokafka", "kafka"])
def test_kafka_clients_are_libraries_in_any_folder(folder, monkeypatch, name):
    file = package(folder, name)
    module = ModuleType(name)
    module.__path__ = [str(folder / name)]
    monkeypatch.setitem(sys.modules, name, module)
    assert is_of_a_library(file)

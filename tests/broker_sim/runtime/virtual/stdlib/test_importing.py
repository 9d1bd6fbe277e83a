"""A module is prepared once, when the program imports it."""

from __future__ import annotations

import importlib
import sys

import pytest

from broker_sim.runtime.virtual.stdlib.kafka_clients import when_imported

NAME = "a_module_of_this_test"


@pytest.fixture
def finders(monkeypatch, tmp_path):
    (tmp_path / f"{NAME}.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", sys.meta_path[:])
    yield sys.meta_path[:]
    sys.modules.pop(NAME, None)


def test_module_is_prepared_after_it_is_executed(finders):
    prepared = []
    when_imported(NAME, lambda module: prepared.append(module.value))
    when_imported(NAME, lambda module: prepared.append("twice"))
    assert prepared == []
    importlib.import_module(NAME)
    assert prepared == [1]
    assert sys.meta_path == finders


def test_module_that_is_there_is_prepared_at_once(finders):
    module = importlib.import_module(NAME)
    prepared = []
    when_imported(NAME, prepared.append)
    assert prepared == [module]
    assert sys.meta_path == finders

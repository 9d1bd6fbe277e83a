"""The list of defects fits the code, and the runner tells a catch from a failure for other reasons."""

import dataclasses
from collections import Counter

import pytest

from tools.defects.defect import ROOT, Defect, DefectError, read_defects, room_of
from tools.defects.run_tests import Failure, RunError, first_failure
from tools.defects.tiers import FAST, stages_of

DEFECTS = read_defects()
FEWEST, FEWEST_OF_A_ROOM = 60, 2
ROOMS = {room_of(str(path.relative_to(ROOT))) for path in ROOT.glob("broker_sim/*/*.py")}
ROOMS -= {"broker_sim/purgatory"}  # other names for the top level's purgatory
ROOMS |= {"purgatory", "integration/comparison", "integration/fuzz", "integration/pipeline"}
A, B = "tests/test_x.py::test_a", "tests/test_x.py::test_b"


def make(before, after="new"):
    return Defect("an_id", "broker_sim/log/cleaner/_x.py", "what a user sees", before, after)


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.id)
def test_a_defect_can_be_put_in_and_is_no_syntax_error(defect):
    patched = defect.patched((ROOT / defect.file).read_text())
    compile(patched, defect.file, "exec", dont_inherit=True)
    assert defect.shows.endswith(".")
    assert defect.id.isidentifier()
    assert defect.id.islower()
    assert all((ROOT / path).exists() for path in defect.near)


def test_every_room_has_its_share():
    counts = Counter(defect.room for defect in DEFECTS)
    assert len(DEFECTS) >= FEWEST
    assert {room for room in ROOMS if counts[room] < FEWEST_OF_A_ROOM} == set()
    assert set(counts) <= ROOMS


@pytest.mark.parametrize("before", ["absent", "old"])
def test_a_text_that_is_not_there_once_names_the_defect(before):
    with pytest.raises(DefectError, match="an_id"):
        make(before).patched("old, old")


def test_an_id_may_be_used_once(tmp_path, monkeypatch):
    table = '[an_id]\nfile = "x.py"\nshows = "It."\nbefore = "a"\nafter = "b"\n'
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(table)
    monkeypatch.setattr("tools.defects.defect.ROOMS", tmp_path)
    with pytest.raises(DefectError, match="an_id"):
        read_defects()


def test_the_nearest_tests_come_first(tmp_path):
    defect = make("old")
    folder = tmp_path / "tests/broker_sim/log/cleaner"
    folder.mkdir(parents=True)
    for name in ("test_x.py", "test_x_of_files.py", "test_xy.py", "test_y.py"):
        (folder / name).touch()
    stages = stages_of(defect, tmp_path, "soak")
    assert stages[0].paths == [
        "tests/broker_sim/log/cleaner/test_x.py",
        "tests/broker_sim/log/cleaner/test_x_of_files.py",
    ]
    names = ["module", "room", "fast", "slow module", "slow room", "test", "soak"]
    assert [stage.name for stage in stages] == names
    assert [stage.tier for stage in stages] == [*["fast"] * 3, *["test"] * 3, "soak"]
    assert stages_of(defect, tmp_path, "test") == stages[:6]
    near = stages_of(defect, tmp_path, "soak", only_near=True)
    assert near == [*stages[:2], *stages[3:5]]


def test_the_tests_that_a_defect_names_come_before_all(tmp_path):
    defect = dataclasses.replace(make("old"), near=("tests/broker_sim/test_z.py",))
    (stage, *_) = stages_of(defect, tmp_path, "fast")
    assert stage.paths == ["tests/broker_sim/test_z.py"]


@pytest.mark.parametrize(
    ("exit_code", "events", "found"),
    [
        (0, [("started", A), ("finished", A)], None),
        (5, [], None),
        (1, [("started", A), ("failed", A), ("finished", A)], Failure(A, "failed")),
        (2, [("failed", "tests/test_x.py")], Failure("tests/test_x.py", "failed")),
        (2, [("started", A), ("finished", A), ("started", B)], Failure(B, "hung")),
        (None, [("started", A)], Failure(A, "hung")),
        (-11, [("started", A)], Failure(A, "died")),
    ],
)
def test_the_first_failure_is_told_with_its_reason(tmp_path, exit_code, events, found):
    assert first_failure(exit_code, events, tmp_path / "output") == found


def test_a_pytest_that_cannot_run_is_no_catch(tmp_path):
    output = tmp_path / "output"
    output.write_text("ERROR: unknown option")
    with pytest.raises(RunError, match="unknown option"):
        first_failure(4, [], output)


def test_the_fast_tier_is_that_of_the_makefile():
    assert f'FAST := "{FAST}"' in (ROOT / "Makefile").read_text()

"""What a wheel's sources are made from: every reference to a module is renamed, and nothing else."""

import ast
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "own_names.py"))
rename, copy_packages, RenameError = TOOL["rename"], TOOL["copy_packages"], TOOL["RenameError"]
OWN_NAMES = TOOL["OWN_NAMES"]
PACKAGES = ("broker_sim", "integration", "purgatory")
MODULES = {"purgatory", "purgatory.clock", "integration", "integration.reference", "integration.reference.image"}


@pytest.mark.parametrize(
    ("source", "renamed"),
    [
        ("import purgatory", "import broker_sim_purgatory as purgatory"),
        ("import purgatory as p", "import broker_sim_purgatory as p"),
        ("import purgatory.clock as c", "import broker_sim_purgatory.clock as c"),
        ("from purgatory import Timer", "from broker_sim_purgatory import Timer"),
        ("from purgatory.clock import (\n    a,\n)", "from broker_sim_purgatory.clock import (\n    a,\n)"),
        ("from  integration import a; b = 1", "from  broker_sim_integration import a; b = 1"),
        ("if a:\n    from integration import b", "if a:\n    from broker_sim_integration import b"),
        (
            "import os, purgatory, integration",
            "import os, broker_sim_purgatory as purgatory, broker_sim_integration as integration",
        ),
        (
            "a = 'é', 'purgatory.clock', 'integration.reference.image:main'",
            "a = 'é', 'broker_sim_purgatory.clock', 'broker_sim_integration.reference.image:main'",
        ),
        (
            '"""First.\n\nRun `python -m integration.reference`.\n"""\n',
            '"""First.\n\nRun `python -m broker_sim_integration.reference`.\n"""\n',
        ),
    ],
)
def test_references_to_modules_are_renamed(source, renamed):
    assert rename(source, MODULES) == renamed


@pytest.mark.parametrize(
    "source",
    [
        "purgatory = 1; purgatory.clock = purgatory.timer",
        "row['purgatory'], 'integration', 'docs/purgatory.md', 'my.purgatory.clock'",
        "'purgatory.timer is no module'",
        "f'{purgatory.clock} of a purgatory.'",
        "from . import purgatory",
        "from broker_sim.purgatory import Timer",
        "def integration(purgatory): return purgatory.clock",
    ],
)
def test_everything_else_stays(source):
    assert rename(source, MODULES) == source


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("\nimport purgatory.clock", "2: import purgatory.clock needs a name"),
        ("a = f'integration.reference.{b}'", "1: write module names of f-strings as __package__"),
        ("from \\\n    purgatory import a", "1: purgatory does not stand in column 5"),
    ],
)
def test_what_cannot_be_renamed_ends_the_build(source, why):
    with pytest.raises(RenameError, match=why):
        rename(source, MODULES)


def test_packages_of_the_repository_refer_to_each_other_by_the_names_of_a_wheel(tmp_path):
    """In texts they name modules of their own distribution only: the other is not there in its build."""
    copy_packages(PACKAGES, ROOT, tmp_path, names=OWN_NAMES)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"broker_sim", "broker_sim_integration", "broker_sim_purgatory"}
    for path in tmp_path.rglob("*.py*"):
        source = path.read_text(encoding="utf-8")
        if not any(name in source for name in OWN_NAMES):
            continue
        in_comparison = path.relative_to(tmp_path).parts[0] == "broker_sim_integration"
        other = "broker_sim_purgatory." if in_comparison else "broker_sim_integration."
        for node in ast.walk(ast.parse(source)):
            imported = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            assert not {name.partition(".")[0] for name in imported} & set(OWN_NAMES), path
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert other not in node.value, path


def test_a_copy_with_the_names_of_the_repository_is_the_sources(tmp_path):
    copy_packages(("purgatory",), ROOT, tmp_path, names={})
    for path in (ROOT / "purgatory").glob("*.py"):
        assert (tmp_path / "purgatory" / path.name).read_bytes() == path.read_bytes()

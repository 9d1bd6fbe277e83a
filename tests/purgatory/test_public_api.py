"""What the package exports, what others use of it, and what it rests on."""

import ast
import gc
import inspect
import re
import sys
import weakref
from pathlib import Path

import broker_sim_purgatory as purgatory
import pytest
from broker_sim_purgatory._timer_task_entry import TaskOwner, TimerTaskEntry
from broker_sim_purgatory._timer_task_list import TimerTaskList
from broker_sim_purgatory._watchers import WatcherList

PACKAGE = Path(purgatory.__file__).parent
ROOT = Path(__file__).parents[2]
USERS = [
    path
    for folder in ("broker_sim", "integration", "tools", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def test_public_names_are_sorted_and_documented():
    assert purgatory.__all__ == sorted(set(purgatory.__all__))
    for name in purgatory.__all__:
        found = getattr(purgatory, name)
        # A native class has no docstring; its source has.
        assert purgatory.compiled or inspect.getdoc(found), name


def test_every_public_name_stands_in_the_documentation():
    pages = [ROOT / "docs" / folder / "purgatory.md" for folder in ("how", "reference")]
    words = {word for page in pages for word in re.findall(r"\w+", page.read_text(encoding="utf-8"))}
    assert set(purgatory.__all__) <= words


def test_a_name_that_does_not_exist_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'DelayQueue'"):
        purgatory.DelayQueue  # noqa: B018 - the access is what is tested


def test_other_packages_use_public_names_and_modules_only():
    private = []
    for path in USERS:
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "purgatory" in source else ():
            if not isinstance(node, ast.ImportFrom) or node.level:
                continue
            package, _, module = (node.module or "").partition(".")
            if package != "broker_sim_purgatory":
                continue
            names = {alias.name for alias in node.names}
            if module.startswith("_") or (not module and not names <= {*purgatory.__all__, "*"}):
                private.append((path.name, node.module, sorted(names)))
    assert private == []


def _statements(tree):
    """Yield all statements but those for the type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _statements(node)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_module_imports_only_the_standard_library_and_its_own_package(path):
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            root = name.partition(".")[0]
            assert root == "broker_sim_purgatory" or root in sys.stdlib_module_names


@pytest.mark.parametrize(
    "made",
    [
        lambda: purgatory.SystemTimer("test", purgatory.VirtualClock(), purgatory.InlineExecutor()),
        TaskOwner,
        TimerTaskEntry,
        lambda: TimerTaskList(TaskOwner()),
        purgatory.VirtualClock,
    ],
)
def test_instances_have_no_dict(made):
    assert not hasattr(made(), "__dict__")


def test_only_a_native_watcher_list_has_room_for_a_dict_and_nothing_is_in_it():
    watchers = WatcherList(TaskOwner())
    # mypyc gives it to a class whose base is not native, here Generic; Python 3.11 hides it while it is empty.
    assert bool(type(watchers).__dictoffset__) is purgatory.compiled
    assert getattr(watchers, "__dict__", {}) == {}


def test_operations_of_slotted_subclasses_have_no_dict():
    class Operation(purgatory.DelayedOperation):
        __slots__ = ()

        def try_complete(self):
            return False

        def on_complete(self):
            pass

        def on_expiration(self):
            pass

    assert not hasattr(Operation(1), "__dict__")


@pytest.mark.parametrize(
    "base", [purgatory.VirtualClock, purgatory.VirtualTimer, purgatory.DelayedOperationPurgatory, TimerTaskEntry]
)
@pytest.mark.usefixtures("collects_little")
def test_subclasses_can_have_weak_references_and_attributes_of_their_own(base):
    class Subclass(base):
        pass

    needs_timer = base is purgatory.DelayedOperationPurgatory
    arguments = ("test", purgatory.VirtualTimer()) if needs_timer else ()
    made = Subclass(*arguments)
    made.own = 1
    trace = weakref.ref(made)
    del made, arguments
    gc.collect()
    assert trace() is None

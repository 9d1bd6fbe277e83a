"""What the package exports, and what it rests on."""

import ast
import gc
import inspect
import sys
import weakref
from pathlib import Path

import pytest

import purgatory

PACKAGE = Path(purgatory.__file__).parent


def test_everything_that_is_exported_exists_once_and_is_documented():
    assert purgatory.__all__ == sorted(set(purgatory.__all__))
    for name in purgatory.__all__:
        found = getattr(purgatory, name)
        # A native class has no docstring; its source has.
        assert purgatory.compiled or inspect.getdoc(found), name


def _statements(tree):
    """Yield all statements but those for the type checker."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _statements(node)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_a_module_imports_the_standard_library_and_its_own_package_only(path):
    for node in _statements(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            root = name.partition(".")[0]
            assert root == "purgatory" or root in sys.stdlib_module_names


@pytest.mark.parametrize(
    "made",
    [
        lambda: purgatory.SystemTimer("test", purgatory.VirtualClock(), purgatory.InlineExecutor()),
        purgatory.TimerTaskEntry,
        lambda: purgatory.TimerTaskList(purgatory.TaskCounter()),
        purgatory.WatcherList,
        purgatory.VirtualClock,
    ],
)
def test_what_is_made_in_numbers_has_no_dict(made):
    assert not hasattr(made(), "__dict__")


def test_operations_have_no_dict_unless_a_subclass_wants_one():
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
    "base",
    [
        purgatory.VirtualClock,
        purgatory.VirtualTimer,
        purgatory.DelayedOperationPurgatory,
        purgatory.TimerTaskEntry,
    ],
)
def test_subclasses_can_be_referred_to_weakly_and_have_attributes_of_their_own(base):
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

"""Lets a plain `assert` of a test show its values outside of pytest too, as pytest shows them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE_OF_PYTEST: Final = "Use -v"
"""The beginning of a line that tells of an option of pytest."""


@contextmanager
def shown_values(module: str) -> Iterator[None]:
    """Let pytest rewrite the asserts of a module, and of others named `test_*`, that are imported meanwhile.

    Does nothing without pytest, and where pytest runs, which does it itself.
    """
    try:
        assertion, config = import_module("_pytest.assertion"), import_module("_pytest.config")
    except ImportError:
        yield
        return
    if module in sys.modules or any(
        isinstance(each, assertion.rewrite.AssertionRewritingHook) for each in sys.meta_path
    ):
        yield
        return
    settings = config.get_config()
    hook = assertion.install_importhook(settings)
    hook.mark_rewrite(module)

    def compared(op: str, left: object, right: object) -> str | None:
        explanations = settings.hook.pytest_assertrepr_compare(config=settings, op=op, left=left, right=right)
        lines = next(filter(None, explanations), None)
        if lines is None:
            return None
        return "\n~".join(line.replace("\n", "\\n") for line in lines if not line.startswith(ADVICE_OF_PYTEST))

    assertion.util._reprcompare = compared  # noqa: SLF001 - pytest sets it the same way, for each test
    try:
        yield
    finally:
        sys.meta_path.remove(hook)

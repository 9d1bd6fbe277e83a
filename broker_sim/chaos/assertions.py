"""Makes plain `assert` statements of tests show their values outside of pytest, as pytest does."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE_OF_PYTEST: Final = "Use -v"
"""Prefix of lines of advice on pytest's options, which are removed."""


@contextmanager
def shown_values(module: str) -> Iterator[None]:
    """Rewrite, by pytest, the asserts of this module and of modules `test_*` imported in the `with` block.

    Does nothing without pytest, and under pytest, which rewrites them itself.
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

    assertion.util._reprcompare = compared  # noqa: SLF001 - as pytest does for each test
    try:
        yield
    finally:
        sys.meta_path.remove(hook)

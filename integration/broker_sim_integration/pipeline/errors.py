"""Errors of the pipeline that the user can do something about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SPARK: Final = "'broker-sim-compare[spark]'"
BROUGHT_BY: Final = {
    "confluent_kafka": "broker-sim-compare",
    "matplotlib": SPARK,
    "numpy": SPARK,
    "pandas": SPARK,
    "pyarrow": SPARK,
    "pyspark": SPARK,
}
"""The requirement that pip has to install, by package."""


class PipelineError(Exception):
    """One line that says what is missing or wrong, and the remedy."""


@contextmanager
def extras_or_error() -> Iterator[None]:
    """Turn a failing import of what an extra brings into a PipelineError that names the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in BROUGHT_BY:
            raise
        raise PipelineError(f"{package} is not installed: pip install {BROUGHT_BY[package]}") from error

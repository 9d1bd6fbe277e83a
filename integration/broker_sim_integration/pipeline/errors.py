"""Errors of the pipeline that users can resolve."""

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
"""The requirement to install with pip, by imported package."""


class PipelineError(Exception):
    """One line with the cause and the remedy."""


@contextmanager
def extras_or_error() -> Iterator[None]:
    """Turn a failed import of an extra's package into a PipelineError with the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in BROUGHT_BY:
            raise
        raise PipelineError(f"{package} is not installed: pip install {BROUGHT_BY[package]}") from error

"""Errors of the pipeline that the user can do something about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["PipelineError", "extras_or_error"]

EXTRAS: Final = {
    "confluent_kafka": "compare",
    "matplotlib": "spark",
    "numpy": "spark",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
}


class PipelineError(Exception):
    """One line that says what is missing or wrong, and the remedy."""


@contextmanager
def extras_or_error() -> Iterator[None]:
    """Turn a failing import of what an extra brings into a PipelineError that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXTRAS:
            raise
        raise PipelineError(
            f"{package} is not installed: pip install 'broker-sim[{EXTRAS[package]}]'"
        ) from error

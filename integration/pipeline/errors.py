"""Errors of the pipeline that the user can do something about."""

__all__ = ["PipelineError"]


class PipelineError(Exception):
    """One line that says what is missing or wrong, and the remedy."""

"""Errors of the references; each message is one line that says what to do."""

from __future__ import annotations


class ReferenceClusterError(RuntimeError):
    """A reference cluster did not start, or did not do what it was asked for."""


class ReferenceUnavailableError(ReferenceClusterError):
    """This machine lacks something that the reference needs; the message names the remedy."""


class UnsupportedFaultError(ReferenceClusterError):
    """This kind of reference cannot do that fault; the message names one that can."""

"""Errors of the references; each message is one line with the remedy."""

from __future__ import annotations


class ReferenceClusterError(RuntimeError):
    """A reference cluster did not start, or did not carry out a verb."""


class ReferenceUnavailableError(ReferenceClusterError):
    """This machine lacks something that the reference needs; the message contains the remedy."""


class UnsupportedFaultError(ReferenceClusterError):
    """This kind of reference cannot cause that fault; the message names one that can."""

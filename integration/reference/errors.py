"""What can go wrong around a real Kafka, each as one line that says what to do."""

from __future__ import annotations

__all__ = ["ReferenceClusterError", "ReferenceUnavailableError", "UnsupportedFaultError"]


class ReferenceClusterError(RuntimeError):
    """A reference cluster that was asked for did not do what it had to do."""


class ReferenceUnavailableError(ReferenceClusterError):
    """This machine lacks something that the reference needs; the message names the remedy."""


class UnsupportedFaultError(ReferenceClusterError):
    """This kind of reference cannot do that fault; the message names one that can."""

"""Errors that end a run in virtual time without being raised by the program under test."""

from __future__ import annotations


class VirtualRunError(Exception):
    """A run in virtual time cannot go on; the text says when, and where tasks wait."""


class VirtualDeadlockError(VirtualRunError):
    """Nothing is ready and no timer is set, so all tasks would wait for ever."""


class VirtualLivelockError(VirtualRunError):
    """A very large number of callbacks ran without time moving."""


class VirtualTimeLimitError(VirtualRunError):
    """The run has exceeded its limit of virtual time."""


class UnhandledError(VirtualRunError):
    """The loop's exception handler got a failure without an exception."""


class EscapeError(VirtualRunError):
    """The program uses something that exists in real time only; the text says what to do."""

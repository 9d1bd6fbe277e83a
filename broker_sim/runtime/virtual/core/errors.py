"""Errors of a run in virtual time that the program under test has not raised itself."""

from __future__ import annotations


class VirtualRunError(Exception):
    """A run in virtual time cannot go on; the text says at which time, and where tasks wait."""


class VirtualDeadlockError(VirtualRunError):
    """Nothing is ready and no timer runs, so what is awaited can never happen."""


class VirtualLivelockError(VirtualRunError):
    """Very many callbacks ran and the time did not move."""


class VirtualTimeLimitError(VirtualRunError):
    """The run takes more virtual time than it may."""


class UnhandledError(VirtualRunError):
    """The loop's exception handler was told of a failure that came without an exception."""


class EscapeError(VirtualRunError):
    """The program asks for something that exists in real time only; the text says what to do."""

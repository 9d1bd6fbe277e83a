"""Unmodified programs in any language in virtual time, each in an OS process of its own.

A process is a callback of the virtual loop: it runs until all its threads wait, while the loop is blocked. A C
library, loaded by LD_PRELOAD, provides the clock, turns for its threads, the network and randomness; `library.h`
describes the protocol and the rules.
"""

from broker_sim.runtime.virtual.programs.compiling import NoVirtualProgramsError, fingerprint
from broker_sim.runtime.virtual.programs.os_process import ProgramHangsError
from broker_sim.runtime.virtual.programs.program import Program

__all__ = ["NoVirtualProgramsError", "Program", "ProgramHangsError", "fingerprint"]

"""Programs of this machine in virtual time: any language, unmodified, each in an OS process of its own.

A process is a callback of the virtual loop: it runs until all its threads wait, while the loop stands still. A
library of C, loaded by LD_PRELOAD, gives it the clock, turns for its threads, the network and chance; `library.h`
tells the protocol and the rules.
"""

from broker_sim.runtime.virtual.programs.compiling import NoVirtualProgramsError, fingerprint
from broker_sim.runtime.virtual.programs.os_process import ProgramHangsError
from broker_sim.runtime.virtual.programs.program import Program

__all__ = ["NoVirtualProgramsError", "Program", "ProgramHangsError", "fingerprint"]

"""Faults that users inject into clients' requests: errors, delays, lost requests and responses."""

from broker_sim.handlers.faults.error_answers import error_answer
from broker_sim.handlers.faults.fault import Fault, Loss, served_api
from broker_sim.handlers.faults.fault_injector import FaultInjector, InjectedFault
from broker_sim.handlers.faults.hook import Hook, HookedRequest

__all__ = [
    "Fault",
    "FaultInjector",
    "Hook",
    "HookedRequest",
    "InjectedFault",
    "Loss",
    "error_answer",
    "served_api",
]

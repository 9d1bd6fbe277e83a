"""Faults that users inject into clients' requests: errors, delays, lost requests and responses."""

from broker_sim.handlers.faults.fault import Damage, Fault, Loss, served_api
from broker_sim.handlers.faults.fault_injector import FaultInjector, InjectedFault
from broker_sim.handlers.faults.hook import Hook, HookedRequest
from broker_sim.handlers.faults.request_faults import RequestFaults

__all__ = [
    "Damage",
    "Fault",
    "FaultInjector",
    "Hook",
    "HookedRequest",
    "InjectedFault",
    "Loss",
    "RequestFaults",
    "served_api",
]

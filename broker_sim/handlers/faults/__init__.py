"""Faults that users inject into clients' requests: errors, delays, lost requests and responses."""

from broker_sim.handlers.faults.fault import Fault, Loss
from broker_sim.handlers.faults.fault_injector import FaultInjector, InjectedFault

__all__ = ["Fault", "FaultInjector", "InjectedFault", "Loss"]

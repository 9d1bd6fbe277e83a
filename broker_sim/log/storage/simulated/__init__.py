"""A simulated disk for virtual time: what is not flushed is lost at a power loss, as chance has it."""

from broker_sim.log.storage.simulated.disk import DiskOptions, SimulatedDisk

__all__ = ["DiskOptions", "SimulatedDisk"]

"""The standard library in virtual time: clocks, sleeping, chance, threads, sockets."""

from broker_sim.runtime.virtual.stdlib.hash_seed import pin_hash_seed, pinned_hash_seed
from broker_sim.runtime.virtual.stdlib.install import install, uninstall

__all__ = ["install", "pin_hash_seed", "pinned_hash_seed", "uninstall"]

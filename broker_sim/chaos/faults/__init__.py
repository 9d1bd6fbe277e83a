"""Faults of a cluster and of its users: actions as data and as text, carried out on both clocks.

Chaos for users' applications and random runs of the simulator itself draw from the same kinds, each in
its own way; who uses the cluster meanwhile does not matter here.
"""

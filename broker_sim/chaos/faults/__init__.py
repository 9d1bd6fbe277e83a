"""Faults of a cluster and of its users: actions as data and as text, for real and virtual time.

Chaos for users' applications and random runs of the simulator itself draw from the same kinds, each in its own
way; this package does not depend on the cluster's clients.
"""

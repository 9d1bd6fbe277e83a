"""Snapshots of a timer's wheels and of a purgatory's watch lists; see docs/how/purgatory.md."""

from broker_sim_purgatory.inspect import *  # noqa: F403 - its public names

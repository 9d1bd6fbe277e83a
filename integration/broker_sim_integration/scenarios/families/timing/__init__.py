"""Scenarios of timing: each kind of wait repeated often enough to be judged by its distribution."""

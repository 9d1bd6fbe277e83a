"""Loads the plugin for virtual time, which runs tests marked `chaos`."""

pytest_plugins = ["broker_sim.testing.pytest_plugin"]

"""The plugin for virtual time is loaded here: it runs what is marked `chaos`."""

pytest_plugins = ["broker_sim.testing.pytest_plugin"]

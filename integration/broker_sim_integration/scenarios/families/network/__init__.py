"""Scenarios of connections: faults of the network, malformed requests, API versions."""

"""Scenarios of produce requests: acks, timeouts, idempotence, pipelining."""

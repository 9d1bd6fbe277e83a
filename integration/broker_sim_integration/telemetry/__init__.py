"""The metrics that clients push (KIP-714): cases played on a real broker with a plugin, and on the simulator."""

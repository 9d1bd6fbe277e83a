"""Scenarios of share groups (KIP-932): members, deliveries, waits, sessions and start offsets."""

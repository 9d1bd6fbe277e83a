"""Metrics that clients push to brokers (KIP-714): subscriptions, pushes, and the last values."""

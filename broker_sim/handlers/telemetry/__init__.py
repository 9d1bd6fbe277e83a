"""Metrics that clients push to brokers (KIP-714): subscriptions, pushes, and what the last ones said."""

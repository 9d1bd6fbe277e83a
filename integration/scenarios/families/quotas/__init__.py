"""Scenarios of clients' quotas."""

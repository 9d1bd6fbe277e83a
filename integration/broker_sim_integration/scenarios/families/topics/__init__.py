"""Scenarios of topics: their administration, metadata, configurations, deleted records."""

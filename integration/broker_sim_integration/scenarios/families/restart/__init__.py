"""Scenarios of restarted brokers, also with damaged files."""

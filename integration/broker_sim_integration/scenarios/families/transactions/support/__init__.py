"""Code shared by the scenarios of transactions: producers of raw requests, and observations."""

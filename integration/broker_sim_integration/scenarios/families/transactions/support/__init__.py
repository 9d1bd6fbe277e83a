"""What all scenarios of transactions use: producers of raw requests, and their observations."""

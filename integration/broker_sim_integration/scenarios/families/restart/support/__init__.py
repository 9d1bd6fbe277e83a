"""What scenarios of restarts share."""

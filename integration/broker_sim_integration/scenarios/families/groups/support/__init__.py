"""What scenarios of groups share."""

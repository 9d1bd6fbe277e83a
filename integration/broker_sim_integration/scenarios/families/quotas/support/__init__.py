"""What scenarios of quotas share."""

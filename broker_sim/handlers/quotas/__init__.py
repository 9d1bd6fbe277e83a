"""The APIs of client quotas."""

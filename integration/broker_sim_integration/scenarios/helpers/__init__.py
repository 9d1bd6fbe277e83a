"""What scenarios share: observations of responses, broker configurations, preparations."""

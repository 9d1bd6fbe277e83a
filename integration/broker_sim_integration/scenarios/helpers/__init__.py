"""Code shared by the scenarios: observations of responses, broker configurations, preparations."""

"""The scenarios: the requests that are played on both sides, above all those that wait."""

"""The report: one HTML page with charts of the tables."""

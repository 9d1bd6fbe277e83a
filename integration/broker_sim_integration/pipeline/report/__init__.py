"""The report: one HTML page with charts of what the tables say."""

"""APIs that read and write records."""

"""APIs that describe and alter configurations."""

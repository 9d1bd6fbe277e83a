"""On PYTHONPATH of fork servers."""

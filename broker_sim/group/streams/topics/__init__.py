"""The partition counts of a topology's topics, and the missing internal topics."""

"""What happens at an age: something is forgotten, closed, rolled or compacted."""

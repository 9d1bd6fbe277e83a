"""APIs of consumer groups, of both protocols, and of their committed offsets."""

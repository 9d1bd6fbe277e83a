"""A compacted topic under test."""

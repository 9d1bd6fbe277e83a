"""Clients of both sides, and what they ask; nothing here knows which side it is."""

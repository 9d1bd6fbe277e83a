"""Clients of both sides and their requests; nothing here knows which side it is."""

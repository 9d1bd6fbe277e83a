"""Clients and their requests for both sides, without any knowledge of the side."""

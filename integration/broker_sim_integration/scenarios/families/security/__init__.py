"""Scenarios of users and their credentials."""

"""Scenarios of consumers: long polls, limits, offsets by timestamp, changes of leader."""

"""Scenarios of replication: ISR, high watermark, elections, leader epochs."""

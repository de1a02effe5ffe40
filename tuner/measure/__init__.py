"""Measures one start: load, counters and validity gates."""

"""Measures one trial: load, counters and validity checks."""

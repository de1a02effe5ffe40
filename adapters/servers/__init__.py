"""Servers and subsystems whose settings are tuned."""

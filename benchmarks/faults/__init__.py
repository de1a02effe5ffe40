"""Managed runs that are broken at random moments, and what has to be so afterwards."""

"""Optimizers: what was observed in, the next point out."""

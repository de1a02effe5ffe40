"""Measuring under noise: windows and gates, noise and drift, pruning, racing, confirmation, latency."""

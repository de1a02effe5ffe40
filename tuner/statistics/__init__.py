"""Statistics of noisy trials: noise, drift, rankings, races and confirmations. Pure."""

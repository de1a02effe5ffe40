"""Statistics of noisy starts: noise, drift, rankings, races and confirmations. Pure."""

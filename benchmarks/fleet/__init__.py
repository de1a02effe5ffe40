"""Studies of several hosts and workers: how they scale, what breaks them, whose winners hold."""

"""The way back: the journal of originals, the lease on a target, its keeper, and recovery by hand."""

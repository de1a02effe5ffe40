"""Load generators: each turns a workload into a command line, and output into counts."""

"""Everything that knows a program by name: hosts, servers and load generators."""

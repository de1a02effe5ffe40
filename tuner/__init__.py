"""Finds the server and kernel settings that serve a load best on a machine, and proves it."""

"""Finds the server and kernel settings that serve a load best on a machine, and proves it."""

__version__ = "0.1.0"

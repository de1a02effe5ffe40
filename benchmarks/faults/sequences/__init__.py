"""Sequences of commands, edits, signals and losses on one host, and what has to hold after each step."""

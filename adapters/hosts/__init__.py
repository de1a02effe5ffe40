"""Machines that commands run on."""

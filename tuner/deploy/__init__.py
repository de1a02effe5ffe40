"""Brings a configuration into force on servers, in a sandbox or installed ones."""

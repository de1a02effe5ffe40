"""Deploys configurations on servers, in a sandbox or installed ones."""

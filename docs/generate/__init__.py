"""Writes those pages of the site that nobody writes by hand; docs/conf.py calls it."""

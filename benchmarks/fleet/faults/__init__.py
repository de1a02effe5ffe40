"""Breaks a study that several workers share, again and again, and looks whether it comes to the same end."""

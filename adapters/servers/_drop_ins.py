"""What the drop-ins of all servers share: files that tuner adds to what is installed, to be read last."""

NAME = "zz-tuner.conf"
"""Directories are read in the order of the names in them."""
HEAD = "Written by tuner: overrides what is set before. Take this file away to undo it."
"""What a new one begins with, as a comment."""

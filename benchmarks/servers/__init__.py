"""What quick studies of every server find on this machine, from `tuner init` to the verdict."""

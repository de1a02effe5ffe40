"""What explains a study, as figures, text and JSON."""

"""A study for people: summary, sensitivity, terminal and HTML page."""

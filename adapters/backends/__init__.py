"""Applications that a study starts behind its servers, by their names."""

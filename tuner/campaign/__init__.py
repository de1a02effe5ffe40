"""The stages of a study: calibrate, search, race, simplify, confirm."""

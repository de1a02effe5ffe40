"""The stages of a study: calibrate, search, race, ablation, confirm."""

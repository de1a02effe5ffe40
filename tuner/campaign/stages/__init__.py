"""Stages of a campaign: search, race, ablation, robustness check, confirmation, fixed rate, effects."""

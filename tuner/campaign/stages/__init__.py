"""Stages of a campaign: search, race, ablation, other loads, confirmation, fixed rate, effects."""

"""Stages of a campaign: search, race, simplification, other loads, confirmation, fixed rate, effects."""

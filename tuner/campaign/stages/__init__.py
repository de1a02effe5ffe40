"""Stages of a campaign: search, promotion, race, simplification, other loads, confirmation, fixed rate."""

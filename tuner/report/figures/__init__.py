"""Figures as SVG and as text: axes, bars, intervals."""

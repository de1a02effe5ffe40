"""The way back: originals, keeper and watchdog."""

"""Commands that measure several configurations or studies against each other."""

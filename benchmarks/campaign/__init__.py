"""Quick studies of drawn servers whose truth is known, with the real campaign on simulated time."""

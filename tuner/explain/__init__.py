"""Why a winner is better: the effect of each setting, what others would do, and how sure that is."""

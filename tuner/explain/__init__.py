"""Why a winner is better: what each of its lines is worth, what others would do, and how sure that is."""

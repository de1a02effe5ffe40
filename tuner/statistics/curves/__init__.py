"""What interleaved blocks have shown: of one parameter's values, or of configurations under rising load."""

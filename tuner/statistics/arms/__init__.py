"""What interleaved blocks say of their arms, whatever the arms are."""

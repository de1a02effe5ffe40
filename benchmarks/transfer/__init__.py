"""What earlier studies of other servers bring to a new one, and what lying ones cost."""

"""What the commands of tuner do."""

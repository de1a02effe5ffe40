"""What the core knows about machines: their hardware, processors, addresses and other services."""

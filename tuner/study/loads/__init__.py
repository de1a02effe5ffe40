"""The loads of a study: those that have a name, mixes of requests, several at once, and what bounds them."""

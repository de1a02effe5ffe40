"""What is raised where nobody answers for a storage."""


class Away(ConnectionError):
    """A proxy, or the database behind it, is away; it may come back."""

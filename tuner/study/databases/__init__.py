"""Where studies are stored: files of SQLite and servers of PostgreSQL."""

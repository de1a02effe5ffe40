"""Where studies are stored: files of SQLite."""

"""The record of what was installed, and the names that may become names on disk."""

"""A directory on disk, followed: what is in it, what changed, and never anything outside."""

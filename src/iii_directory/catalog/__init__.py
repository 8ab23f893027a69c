"""The one catalogue: its two sources, the merged snapshot, and how an id is found in it."""

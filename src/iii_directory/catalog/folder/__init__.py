"""Read the skill folders and follow their changes."""

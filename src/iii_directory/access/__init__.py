"""Who may connect."""

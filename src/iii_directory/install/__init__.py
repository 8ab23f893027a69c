"""Downloads that are all or nothing."""

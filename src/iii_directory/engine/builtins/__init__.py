"""The functions and trigger types the embedded engine provides itself."""

"""Search: which of many documents answers a question in words, why, and whether any does."""

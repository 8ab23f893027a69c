"""The workers registry: a client for any, and a server for one's own."""

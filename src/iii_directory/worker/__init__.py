"""This worker on any iii engine."""

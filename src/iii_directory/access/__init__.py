"""Decide who may connect."""

"""iii-directory: tells agents what an iii engine offers and how to use it."""

__version__ = "0.1.0"

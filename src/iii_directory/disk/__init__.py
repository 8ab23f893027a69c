"""The one way to the disk: opening safely, the state of a file, operations that can fail, and a lock."""

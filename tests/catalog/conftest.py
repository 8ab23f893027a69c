"""A folder to read from, as in the tests of folders."""

from tests.folders.conftest import local, skills, view, watcher

__all__ = ["local", "skills", "view", "watcher"]

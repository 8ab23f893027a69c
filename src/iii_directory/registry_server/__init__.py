"""A registry of one's own: releases, ranking and the server."""

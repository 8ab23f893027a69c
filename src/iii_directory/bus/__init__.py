"""The way to an engine, inside its process or over a socket."""

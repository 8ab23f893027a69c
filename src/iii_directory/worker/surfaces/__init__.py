"""One thin table per generation, from function id to handler to schema to description."""

"""Read and write the disk safely, and keep the record of what was installed."""

"""Read and write the disk safely."""

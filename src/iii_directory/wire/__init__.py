"""What engines and workers say to each other, and the sockets they say it on."""

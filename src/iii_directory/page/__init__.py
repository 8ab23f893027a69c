"""Show the directory as web pages, with a JSON and a Markdown twin of each."""

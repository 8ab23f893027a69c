"""The bridge for MCP clients."""

"""MCP: tools of other programs' servers through the pipeline, and the proxy before a server."""

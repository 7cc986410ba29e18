"""One command in front of an MCP server: its tool calls are guarded, all else passes untouched."""

"""The MCP server: what Claude, Codex, Gemini and other agents call instead of reading a mount.

A door on api.Geniuz by the official SDK, which is an extra: `pip install 'geniuzfs[mcp]'`.
"""

"""Where agents' clients keep their list of MCP servers, on Linux.

Each client's own documentation says so:

- Claude Desktop: https://modelcontextprotocol.io/docs/develop/connect-local-servers names the file;
  on Linux it lies in the directory of the user's configuration
- Claude Code, user scope: https://code.claude.com/docs/en/mcp
- Cursor, global: https://cursor.com/docs/mcp
- VS Code, user profile: https://code.visualstudio.com/docs/agents/reference/mcp-configuration
- Codex: https://developers.openai.com/codex/mcp
- Gemini CLI: https://geminicli.com/docs/tools/mcp-server
- Windsurf: https://docs.windsurf.com/windsurf/cascade/mcp
- Zed: https://zed.dev/docs/ai/mcp

Pure: reads no environment and no file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Client(NamedTuple):
    """A client: `path` begins in the home directory, or in the directory of `variable`."""

    name: str
    path: str
    key: str
    """Under which the servers stand in the file, by name."""
    variable: str = ""
    """An environment variable that moves the file."""
    moved: str = ""
    """The file's path in the directory that the variable names."""
    typed: bool = False
    """An entry says `"type": "stdio"`."""

    @property
    def toml(self) -> bool:
        return self.path.endswith(".toml")

    def file(self, environment: Mapping[str, str]) -> Path:
        """Where this client looks."""
        above = environment.get(self.variable) if self.variable else None
        if above:
            return Path(above, self.moved)
        return Path(environment.get("HOME") or "~", self.path).expanduser()


_XDG = "XDG_CONFIG_HOME"

CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "mcpServers",
            _XDG,
            "Claude/claude_desktop_config.json",
        ),
        Client(
            "claude-code",
            ".claude.json",
            "mcpServers",
            "CLAUDE_CONFIG_DIR",
            ".claude.json",
            typed=True,
        ),
        Client("cursor", ".cursor/mcp.json", "mcpServers"),
        Client(
            "vscode",
            ".config/Code/User/mcp.json",
            "servers",
            _XDG,
            "Code/User/mcp.json",
            typed=True,
        ),
        Client("codex", ".codex/config.toml", "mcp_servers", "CODEX_HOME", "config.toml"),
        Client("gemini", ".gemini/settings.json", "mcpServers"),
        Client("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        Client("zed", ".config/zed/settings.json", "context_servers", _XDG, "zed/settings.json"),
    )
}

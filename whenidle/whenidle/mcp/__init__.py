"""The task tools as an MCP server on standard input and output: `whenidle mcp` (SPEC 7.2).

It needs the extra `whenidle[mcp]`, the official SDK; nothing else of whenidle imports this package. The parts:

| module | what |
|---|---|
| `post` | the server's place at its store: it delivers, or another process does and it takes over when that ends |
| `tool_calls` | the four task tools, answered at the desk of that place |
| `resources` | tasks with their deliveries, to be listed and read |
| `changes`, `task_versions` | what tells clients that tasks have changed, whoever changed them, and what sees it |
| `server` | the SDK's server, with all of that in it |
| `transport`, `lines`, `stdio` | messages as lines on two descriptors that nothing else in the process can reach |
"""

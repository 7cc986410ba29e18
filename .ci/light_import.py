"""Fail if `import seawall` brings a framework, a database client or a server with it."""

import sys

import seawall

HEAVY = {
    "agents",
    "aiosqlite",
    "fastapi",
    "fastmcp",
    "langchain_core",
    "langgraph",
    "mcp",
    "opentelemetry",
    "prometheus_client",
    "pydantic",
    "pydantic_ai",
    "redis",
    "rich",
    "sqlalchemy",
    "starlette",
    "tornado",
    "typer",
    "uvicorn",
}
found = sorted(HEAVY & set(sys.modules))
if found:
    sys.exit(f"import seawall {seawall.__version__} brings: {', '.join(found)}")

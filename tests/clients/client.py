"""Calls tools of an MCP server with Python's SDK.

Reads {"command": [...], "cwd": "...", "env": {...}, "calls": [{"name", "arguments"}]} from standard
input; prints {"server": {...}, "tools": [...], "results": [...]}.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


async def main() -> None:
    job = json.load(sys.stdin)
    server = StdioServerParameters(
        command=job["command"][0], args=job["command"][1:], env=job["env"], cwd=job["cwd"]
    )
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = await session.list_tools()
        results = []
        for call in job["calls"]:
            result = await session.call_tool(call["name"], call["arguments"])
            results.append(result.model_dump(mode="json", by_alias=True))
        answer = {
            "server": hello.model_dump(mode="json", by_alias=True),
            "tools": [tool.name for tool in tools.tools],
            "results": results,
        }
    json.dump(answer, sys.stdout)


asyncio.run(main())

"""A server of FastMCP: `stdio`, or `http` or `stateless` with a port."""

import sys
from dataclasses import dataclass

from fastmcp import FastMCP

server = FastMCP("test")


@dataclass
class Place:
    name: str
    people: int


@server.tool
def greet(name: str) -> str:
    return f'Hello "{name}"\nand ü\n'


@server.tool
def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool
def place(name: str | None = None) -> Place:
    return Place(name or "Ulm", 7)


@server.tool
def nothing() -> None:
    pass


match sys.argv[1:]:
    case [kind, port]:
        stateless = kind == "stateless"
        server.run("http", host="127.0.0.1", port=int(port), stateless_http=stateless, show_banner=False)
    case _:
        server.run(show_banner=False)

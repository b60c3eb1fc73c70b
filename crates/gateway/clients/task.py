"""The task that every client does: two calls in one reply, their results, an invalid call that is repaired, an answer."""

import sys

ANSWER = "Paris has 21 degrees, Oslo 7."
CITIES = ["Paris", 'Oslo "N"']
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def addresses():
    """The gateways with the whole task, with only an invalid call, with that and streamed arguments, and with calls as the repair."""
    return sys.argv[1:]


def check(found, expected):
    if found != expected:
        raise SystemExit(f"expected {expected!r}, found {found!r}")

"""Native tool calls with any HTTP library: requests and answers as bytes, without I/O.

`plaincall.httpx2`, `plaincall.httpx` and `plaincall.asgi` are built on it. Pass each request that `Adapter.translates` to
`Adapter.ask`. For an `Asked`, send its body to its target, feed the answer, and send the pieces to the client. After its end, the reply
is complete, or the body of the next request corrects it.
"""

from plaincall._gateway import READ_ON, STOP, USAGE_ONLY
from plaincall._plaincall import USAGE_WAIT, Adapter, Asked, ErrorResponse, TokenCount

__all__ = ["READ_ON", "STOP", "USAGE_ONLY", "USAGE_WAIT", "Adapter", "Asked", "ErrorResponse", "TokenCount"]

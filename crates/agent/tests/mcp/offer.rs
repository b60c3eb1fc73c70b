//! Our tools for MCP clients.

use std::io::Cursor;

use plaincall_agent::mcp::McpToolServer;
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

/// The answers to lines that are not messages.
#[tokio::test]
async fn lines_that_are_not_messages() {
    let error = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"this is not a protocol message: ";
    for (lines, count) in [
        (&b"{\n"[..], 1),
        (b"nonsense\n\n", 1),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\"", 1),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\n[\n",
            2,
        ),
        (b"\n \r\n", 0),
    ] {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let offer = McpToolServer::new(plaincall::Toolbox::default());
        let served = offer.serve(Cursor::new(lines.to_vec()), ours, CancellationToken::new());
        served.await.expect("the client went away");
        let mut answers = String::new();
        theirs.read_to_string(&mut answers).await.expect("text");
        assert_eq!(answers.lines().count(), count, "{answers}");
        for answer in answers.lines() {
            assert!(answer.starts_with(error), "{answer}");
        }
    }
}

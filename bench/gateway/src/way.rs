//! A route to the model server.

use std::net::SocketAddr;

/// A route to the model server: directly, or through a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Whether the answers contain native calls.
    pub(crate) has_calls: bool,
    /// Additional headers of each request.
    pub(crate) headers: String,
}

impl Way {
    /// Returns the bytes of a request with this body.
    pub(crate) fn request(&self, body: &str) -> Vec<u8> {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer key\r\ncontent-type: application/json\r\n{}content-length: {}\r\n\r\n{body}",
            self.address,
            self.headers,
            body.len()
        )
        .into_bytes()
    }
}

//! A way to the model's server.

use std::net::SocketAddr;

/// A way to the model's server: none but itself, or something before it.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// Whether what comes back has native calls.
    pub(crate) has_calls: bool,
    /// Additional headers of each request.
    pub(crate) headers: String,
}

impl Way {
    /// The bytes of a request with this body.
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

//! The parts of HTTP that the measurements need.

use tokio::net::TcpStream;

/// Writes all bytes.
pub(crate) async fn write(stream: &TcpStream, mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        stream.writable().await.map_err(|error| error.to_string())?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// Reads available bytes and returns their number; 0 at the end.
pub(crate) async fn read(stream: &TcpStream, into: &mut Vec<u8>) -> Result<usize, String> {
    loop {
        match stream.try_read_buf(into) {
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                stream.readable().await.map_err(|error| error.to_string())?;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Reads a message that is not streamed, and returns the position of its body. Returns `None` if the connection has
/// ended.
pub(crate) async fn read_message(
    stream: &TcpStream,
    message: &mut Vec<u8>,
) -> Result<Option<usize>, String> {
    message.clear();
    let mut place = None;
    loop {
        if read(stream, message).await? == 0 {
            return if message.is_empty() {
                Ok(None)
            } else {
                Err("the connection closed early".to_owned())
            };
        }
        if place.is_none() {
            place = find(message, b"\r\n\r\n").map(|end| {
                let head = message.get(..end).unwrap_or_default();
                (end + 4, length(head))
            });
        }
        let is_whole = match place {
            Some((body, Some(length))) => message.len() >= body + length,
            Some((_, None)) => message.ends_with(b"\r\n0\r\n\r\n"),
            None => false,
        };
        if is_whole {
            return Ok(place.map(|(body, _)| body));
        }
    }
}

/// Returns the length of the body from a head. Returns `None` if the body is chunked.
fn length(head: &[u8]) -> Option<usize> {
    let mut is_chunked = false;
    for line in head.split(|byte| *byte == b'\n') {
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"content-length") {
            let text = str::from_utf8(value).unwrap_or_default();
            return text.trim_matches([':', ' ', '\r']).parse().ok();
        }
        is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }
    (!is_chunked).then_some(0)
}

/// Returns the position of a part in a text.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, part)
}

//! The standard input of a command, written while the command reads it, so that long results of dependencies are shared
//! and never copied whole.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// The length of a text that is escaped as JSON at a time, in bytes.
const CHUNK: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct Input {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Plain(Vec<u8>),
    /// A text that is written as a JSON string.
    Text(Arc<str>),
}

impl Input {
    pub(crate) fn push(&mut self, bytes: impl Into<Vec<u8>>) {
        let mut bytes = bytes.into();
        match self.parts.last_mut() {
            Some(Part::Plain(last)) => last.append(&mut bytes),
            _ => self.parts.push(Part::Plain(bytes)),
        }
    }

    pub(crate) fn push_text(&mut self, text: &Arc<str>) {
        self.push(*b"\"");
        self.parts.push(Part::Text(Arc::clone(text)));
        self.push(*b"\"");
    }

    /// Writes all of it to a program. A program that does not read it is not an error.
    pub(crate) async fn write_to(&self, stdin: Option<impl AsyncWrite + Unpin>) {
        if let Some(mut stdin) = stdin {
            let _ = self.write(&mut stdin).await;
            let _ = stdin.shutdown().await;
        }
    }

    async fn write(&self, stdin: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        for part in &self.parts {
            match part {
                Part::Plain(bytes) => stdin.write_all(bytes).await?,
                Part::Text(text) => {
                    let mut rest = &**text;
                    while !rest.is_empty() {
                        let end = rest.floor_char_boundary(CHUNK);
                        let (now, later) = rest.split_at_checked(end).unwrap_or((rest, ""));
                        let json = serde_json::to_vec(now)?;
                        let quoted = 1..json.len().saturating_sub(1);
                        stdin
                            .write_all(json.get(quoted).unwrap_or_default())
                            .await?;
                        rest = later;
                    }
                }
            }
        }
        Ok(())
    }
}

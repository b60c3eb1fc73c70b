//! Protocol messages as lines of JSON. A line that a request may wait for is never dropped silently.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, OnceLock};

use plaincall::tool::json::keep_digits;
use plaincall_wire::replace_lone_surrogates;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::clipped;

pub(super) const LONGEST_MESSAGE: usize = 16 << 20;
/// The beginning of the error of an answer that cannot be read.
pub(super) const INVALID: &str = "its answer is invalid: ";

/// The beginning of the first skipped output of a server that looks like a message.
pub(super) type Noise = Arc<OnceLock<String>>;

/// Why we ended a connection, as a predicate.
pub(super) type Reason = Arc<OnceLock<String>>;

/// The handling of an invalid line.
#[derive(Clone, Debug)]
pub(super) enum Unreadable {
    /// Answer it with an error, for clients.
    Answer,
    /// Skip it, or fail the request that it answers. If a line exceeds the limit, the stream ends with this reason.
    Skip(Reason, Noise),
}

pub(super) struct Messages<Role: ServiceRole, R, W> {
    input: BufReader<R>,
    /// The beginning of the next line. It is kept if reading is interrupted.
    line: Vec<u8>,
    /// Whether the rest of too long a line is skipped.
    is_skipping: bool,
    limit: usize,
    unreadable: Unreadable,
    next: VecDeque<RxJsonRpcMessage<Role>>,
    /// The future that writes the answer to an invalid line.
    answering: Option<JoinHandle<io::Result<()>>>,
    waiting: Vec<RequestId>,
    output: Arc<Mutex<Option<W>>>,
}

pub(super) enum Line<M> {
    Message(M),
    /// Nothing that a request waits for.
    Nothing,
    /// An invalid message, with its id if it answers a request.
    Unreadable(Option<RequestId>, String),
}

/// Records skipped output, unless it is plain text, which many servers print.
pub(super) fn skip(line: &[u8], noise: &Noise) {
    if line.trim_ascii().starts_with(b"{") {
        noise.get_or_init(|| clipped(String::from_utf8_lossy(line).trim()));
    }
}

impl<Role, R, W> Messages<Role, R, W>
where
    Role: ServiceRole,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, unreadable: Unreadable) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            is_skipping: false,
            limit: LONGEST_MESSAGE,
            unreadable,
            next: VecDeque::new(),
            answering: None,
            waiting: Vec::new(),
            output: Arc::new(Mutex::new(Some(output))),
        }
    }

    /// Reads to the end of a line; `false` at the end of the stream. Cancel safe.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let room = (self.limit + 1).saturating_sub(self.line.len());
            let mut input = (&mut self.input).take(u64::try_from(room).unwrap_or(u64::MAX));
            let count = input.read_until(b'\n', &mut self.line).await?;
            let is_whole = self.line.ends_with(b"\n");
            if self.is_skipping {
                self.line.clear();
                self.is_skipping = !is_whole;
            } else if is_whole
                || self.line.len() > self.limit
                || (count == 0 && !self.line.is_empty())
            {
                return Ok(true);
            }
            if count == 0 {
                return Ok(false);
            }
        }
    }

    /// Handles the line; `false` if it ends the stream.
    fn take_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let is_long = line.len() > self.limit;
        if is_long && let Unreadable::Skip(reason, _) = &self.unreadable {
            reason.get_or_init(|| format!("wrote a message of more than {LONGEST_MESSAGE} bytes"));
            return false;
        }
        let read = if is_long {
            self.is_skipping = !line.ends_with(b"\n");
            Line::Unreadable(None, format!("it has more than {} bytes", self.limit))
        } else {
            read::<RxJsonRpcMessage<Role>>(&line)
        };
        match (read, &self.unreadable) {
            (Line::Nothing, _) => {}
            (Line::Message(message), _) => self.next.push_back(message),
            (Line::Unreadable(_, why), Unreadable::Answer) => {
                let message = format!("this is not a protocol message: {why}");
                let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": message}});
                let output = Arc::clone(&self.output);
                let line = format!("{error}\n");
                self.answering = Some(tokio::spawn(async move { write(&output, &line).await }));
            }
            (Line::Unreadable(Some(id), why), Unreadable::Skip(..))
                if self.waiting.contains(&id) =>
            {
                self.next.push_back(failed(id, &why));
            }
            // Some servers print text and logs between their messages.
            (Line::Unreadable(..), Unreadable::Skip(_, noise)) => skip(&line, noise),
        }
        true
    }
}

impl<Role, R, W> Transport<Role> for Messages<Role, R, W>
where
    Role: ServiceRole,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<Role>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            self.waiting.push(request.id.clone());
        }
        let line = serde_json::to_string(&item).map(|line| line + "\n");
        let output = Arc::clone(&self.output);
        async move { write(&output, &line?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<Role>> {
        loop {
            // This future may be dropped and called again; the writer continues.
            if let Some(answering) = &mut self.answering {
                let written = answering.await;
                self.answering = None;
                written.ok()?.ok()?;
            }
            if let Some(message) = self.next.pop_front() {
                let id = answered(&message);
                self.waiting.retain(|waiting| Some(waiting) != id);
                return Some(message);
            }
            if !self.read_line().await.ok()? || !self.take_line() {
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        drop(self.output.lock().await.take());
        Ok(())
    }
}

/// Returns the id of the request that a message answers.
pub(super) fn answered<Req, Resp, Not>(
    message: &JsonRpcMessage<Req, Resp, Not>,
) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<Option<W>>, line: &str) -> io::Result<()> {
    let mut output = output.lock().await;
    let Some(output) = output.as_mut() else {
        return Err(io::ErrorKind::NotConnected.into());
    };
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

pub(super) fn failed<Req, Resp, Not>(id: RequestId, why: &str) -> JsonRpcMessage<Req, Resp, Not> {
    let error = ErrorData::parse_error(format!("{INVALID}{why}"), None);
    JsonRpcMessage::error(error, Some(id))
}

/// Parses a line. Unpaired surrogates and invalid UTF-8 become U+FFFD, and no integer of a call loses a digit.
pub(super) fn read<M: serde::de::DeserializeOwned>(line: &[u8]) -> Line<M> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_start_matches('\u{feff}').trim_ascii();
    if line.is_empty() {
        return Line::Nothing;
    }
    let line = with_digits(replace_lone_surrogates(line));
    let error = match serde_json::from_str(&line) {
        Ok(message) => return Line::Message(message),
        Err(error) => error,
    };
    let Ok(document) = serde_json::from_str::<Value>(&line) else {
        return Line::Unreadable(id_in(&line), error.to_string());
    };
    let has = |key: &str| document.get(key).is_some();
    if has("method") && !has("id") {
        // A notification of another protocol version.
        return Line::Nothing;
    }
    let is_answer = has("result") || has("error");
    let id = id_in(&line).filter(|_| is_answer || has("jsonrpc"));
    Line::Unreadable(id, "it has the wrong structure".to_owned())
}

/// Returns a message with long integers as strings if it has the arguments or the structured result of a call. In other messages,
/// no one uses their digits.
pub(super) fn with_digits(message: Cow<'_, str>) -> Cow<'_, str> {
    let Cow::Owned(kept) = keep_digits(&message) else {
        return message;
    };
    let document = serde_json::from_str::<Value>(&message).unwrap_or_default();
    let mut places = ["/params/arguments", "/result/structuredContent"].into_iter();
    if places.any(|place| document.pointer(place).is_some()) {
        return Cow::Owned(kept);
    }
    message
}

/// The top-level id of a truncated or damaged message.
fn id_in(line: &str) -> Option<RequestId> {
    let mut depth = 0_usize;
    let mut rest = line;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let (sign, behind) = rest.get(at..)?.split_at_checked(1)?;
        rest = behind;
        match sign {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.checked_sub(1)?,
            _ => {
                let end = end_of_text(behind)?;
                let (text, behind) = behind.split_at_checked(end)?;
                rest = behind.get(1..)?;
                if let Some(value) = rest.trim_ascii_start().strip_prefix(':')
                    && depth == 1
                    && text == "id"
                {
                    let values = serde_json::Deserializer::from_str(value);
                    return values.into_iter::<RequestId>().next()?.ok();
                }
            }
        }
    }
    None
}

/// The position of the closing quote of a string.
fn end_of_text(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(at),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use rmcp::RoleClient;
    use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, NumberOrString, RequestId};
    use rmcp::transport::Transport as _;

    use super::{Messages, Noise, Reason, Unreadable, id_in};

    #[test]
    fn ids_of_messages_that_cannot_be_read() {
        let number = |id| Some(NumberOrString::Number(id));
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"a"#,
                number(7),
            ),
            (r#"{"id": 7 ,"result":NaN}"#, number(7)),
            (r#"{"result":{"id":1,"x":[{"id":2}]},"id":7}}"#, number(7)),
            (
                r#"{"id":"a\"b","result"#,
                Some(NumberOrString::String("a\"b".into())),
            ),
            (r#"{"text":"\"id\":1","#, None),
            (r#"{"id":"#, None),
            (r#"{"id":null"#, None),
            ("{", None),
            ("]", None),
        ] {
            assert_eq!(id_in(line), expected, "{line}");
        }
    }

    /// The results of a server's lines while requests 1 and 2 wait: errors as `!id`.
    async fn read_by_client(lines: &[u8]) -> (Vec<String>, bool) {
        let reason = Reason::default();
        let unreadable = Unreadable::Skip(Arc::clone(&reason), Noise::default());
        let mut messages = Messages::<RoleClient, _, _>::new(
            Cursor::new(lines.to_vec()),
            tokio::io::sink(),
            unreadable,
        );
        messages.limit = 200;
        for id in [1, 2] {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let ping: ClientJsonRpcMessage = serde_json::from_str(&ping).expect("a message");
            messages.send(ping).await.expect("it is written");
        }
        let mut read = Vec::new();
        while let Some(message) = messages.receive().await {
            read.push(match message {
                JsonRpcMessage::Response(response) => {
                    let result = serde_json::to_string(&response.result).expect("JSON");
                    format!("{}: {result}", response.id)
                }
                JsonRpcMessage::Error(error) => {
                    format!("!{}", error.id.unwrap_or(RequestId::Number(0)))
                }
                JsonRpcMessage::Request(_) => "request".to_owned(),
                JsonRpcMessage::Notification(_) => "notification".to_owned(),
            });
        }
        (read, reason.get().is_some())
    }

    #[tokio::test]
    async fn messages_of_a_server_are_parsed() {
        let long = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"a\":\"{}\"}}}}\n",
            "a".repeat(200)
        );
        for (lines, expected, over) in [
            (&b""[..], &[][..], false),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n", &["1: {}"], false),
            // The answer to one request is truncated, and the other request waits.
            (b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\n", &["!2"], false),
            (b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":NaN}\r\n", &["!2"], false),
            (b"{\"id\":1,\"result\":{}}", &["!1"], false),
            // Logs, half a line, and objects that answer no request.
            (b"{\"jsonrpc\":\"2.0\",\n{ not json\n", &[], false),
            (b"{\"level\":30,\"id\":1,\"msg\":\"starting\"}\n{\"result\":5}\n{\"jsonrpc\":\"2.0\"}\n", &[], false),
            // One that no request waits for, and text.
            (b"{\"jsonrpc\":\"2.0\",\"id\":9,\"result\"\n", &[], false),
            (b"Server is ready\n\n[info] x\n", &[], false),
            // Halves of surrogate pairs, and bytes that are not UTF-8.
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\\ud83d\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":\"\xff\"}}\n",
                &["1: {\"a\":\"\u{fffd}\"}", "2: {\"a\":\"\u{fffd}\"}"],
                false,
            ),
            // Integers beyond 64 bits in the result of a call; not other numbers.
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":[18446744073709551617,0.10000000000000001]}}\n",
                &["1: {\"content\":[],\"structuredContent\":[\"18446744073709551617\",0.1]}"],
                false,
            ),
            (long.as_bytes(), &[], true),
        ] {
            let (read, is_over) = read_by_client(lines).await;
            let lines = String::from_utf8_lossy(lines);
            assert_eq!(read, expected, "{lines}");
            assert_eq!(is_over, over, "{lines}");
        }
    }
}

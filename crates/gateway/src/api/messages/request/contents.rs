//! Converts the contents of messages.

use std::borrow::Cow;

use plaincall_wire::Json;
use plaincall_wire::anthropic::{Content, ContentBlock, Source};
use plaincall_wire::openai::{self, ContentPart, Message, ToolCall};
use serde_json::json;

use crate::api::messages::call_id;
use crate::api::messages::request::InvalidBlock;
use crate::translate::{IS_ERROR, TOOL_REFERENCE, text_part};

/// The messages of the chat completions request.
#[derive(Default)]
pub(super) struct Contents<'r> {
    messages: Vec<Message<'r>>,
}

impl<'r> Contents<'r> {
    pub(super) fn into_messages(self) -> Vec<Message<'r>> {
        self.messages
    }

    pub(super) fn system(&mut self, text: Option<Cow<'r, str>>) {
        let text = text.map(openai::Content::Text);
        self.messages
            .extend(text.map(|text| Message::new("system", text)));
    }

    /// Adds the results in a user's message, then the rest of it.
    pub(super) fn user(&mut self, content: Content<'r>) -> Result<(), InvalidBlock> {
        let blocks = match content {
            Content::Text(text) => {
                let text = openai::Content::Text(text);
                self.messages.push(Message::new("user", text));
                return Ok(());
            }
            Content::Blocks(blocks) => blocks,
        };
        let mut parts = Vec::with_capacity(blocks.len());
        let mut has_results = false;
        for (index, block) in blocks.into_iter().enumerate() {
            let place = || format!(".content[{index}]");
            if block.kind.as_deref() == Some("tool_result") {
                has_results = true;
                let result =
                    result(block).map_err(|message| InvalidBlock::new(message, place()))?;
                self.messages.push(result);
            } else {
                let mut more =
                    part(block).map_err(|message| InvalidBlock::new(message, place()))?;
                parts.append(&mut more);
            }
        }
        if !parts.is_empty() || !has_results {
            let content = content_of(parts, "\n\n");
            self.messages.push(Message::new("user", content));
        }
        Ok(())
    }

    pub(super) fn assistant(&mut self, content: Content<'r>) {
        let mut message = match content {
            Content::Text(text) => Message::new("assistant", openai::Content::Text(text)),
            Content::Blocks(blocks) => turn(blocks),
        };
        if !message.calls().is_empty() {
            // Servers expect `null` rather than an empty text.
            let is_empty = |content: &openai::Content<'_>| content.text().is_empty();
            message.content = message.content.filter(|content| !is_empty(content));
        }
        self.messages.push(message);
    }
}

/// Converts a turn of the model. Blocks of tools that Anthropic's servers run are dropped.
fn turn(blocks: Vec<ContentBlock<'_>>) -> Message<'_> {
    let (mut texts, mut thinking, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block.kind.as_deref() {
            Some("text") => texts.extend(block.text),
            Some("thinking") => thinking.extend(block.thinking),
            Some("tool_use") => {
                let input = block
                    .input
                    .map_or_else(|| "{}".into(), |input| input.text().to_owned());
                let (id, name) = (block.id.map(call_id::for_server), block.name);
                calls.push(ToolCall::new(
                    id.unwrap_or_default(),
                    name.unwrap_or_default(),
                    input,
                ));
            }
            _ => {}
        }
    }
    let mut message = Message::new("assistant", openai::Content::Text(joined(texts, "")));
    let thinking = Some(joined(thinking, "\n")).filter(|thinking| !thinking.is_empty());
    message.reasoning_content = thinking;
    message.tool_calls = Some(calls).filter(|calls| !calls.is_empty());
    message
}

/// Converts the result of a call.
fn result(block: ContentBlock<'_>) -> Result<Message<'_>, String> {
    let content = block
        .content()
        .map_err(|error| format!("content: {error}"))?;
    let content = match content {
        None => openai::Content::Text("".into()),
        Some(Content::Text(text)) => openai::Content::Text(text.into_owned().into()),
        Some(Content::Blocks(blocks)) => {
            let mut parts = Vec::with_capacity(blocks.len());
            for (index, block) in blocks.into_iter().enumerate() {
                let more = part(block).map_err(|message| format!("content[{index}]: {message}"))?;
                parts.extend(more.into_iter().map(ContentPart::into_owned));
            }
            content_of(parts, "\n")
        }
    };
    let mut message = Message::new("tool", content);
    message.tool_call_id = block.tool_use_id.map(call_id::for_server);
    if block.is_error == Some(true) {
        message.unknown.set(IS_ERROR, Json::new(&true));
    }
    Ok(message)
}

/// Converts a block of a user's message or of a result.
fn part(block: ContentBlock<'_>) -> Result<Vec<ContentPart<'_>>, String> {
    let kind = block.kind.clone().unwrap_or_default();
    match &*kind {
        "text" => return Ok(block.text.map(text_part).into_iter().collect()),
        "search_result" => return Ok(vec![text_part(search_result(&block)?.into())]),
        "tool_reference" => {
            let mut part = ContentPart {
                kind: Some(TOOL_REFERENCE.into()),
                ..ContentPart::default()
            };
            let name = block.tool_name.unwrap_or_default();
            part.unknown.set("tool_name", Json::new(&name));
            return Ok(vec![part]);
        }
        _ => {}
    }
    let source = block.source.as_ref();
    let source = source.map(Json::read::<Source<'_>>);
    let source = match source {
        Some(source) => source.map_err(|error| format!("source: {error}"))?,
        None => {
            return Err(format!(
                "blocks of type `{kind}` are not supported; remove it"
            ));
        }
    };
    let title = block.title.as_deref().unwrap_or_default();
    let parts = match (&*kind, source.kind.as_deref().unwrap_or_default()) {
        ("image", "base64" | "url") => {
            vec![object_part("image_url", &json!({"url": url(&source)}))]
        }
        ("document", "text") => {
            vec![text_part(
                titled(title, &source.data.unwrap_or_default()).into(),
            )]
        }
        ("document", "base64") => {
            let name = if title.is_empty() {
                "document.pdf"
            } else {
                title
            };
            let file = json!({"filename": name, "file_data": url(&source)});
            vec![object_part("file", &file)]
        }
        ("document", "content") => match source.content.unwrap_or_else(|| "".into()) {
            Content::Text(text) => vec![text_part(titled(title, &text).into())],
            Content::Blocks(blocks) => {
                let mut parts = Vec::with_capacity(blocks.len());
                // Documents contain texts and images, not documents.
                for block in blocks
                    .into_iter()
                    .filter(|block| block.kind.as_deref() != Some("document"))
                {
                    parts.extend(part(block)?.into_iter().map(ContentPart::into_owned));
                }
                parts
            }
        },
        (_, source) => {
            return Err(format!(
                "`{kind}` with a source of type `{source}` is not supported; send its data"
            ));
        }
    };
    Ok(parts)
}

/// Converts a search result to its text.
fn search_result(block: &ContentBlock<'_>) -> Result<String, String> {
    let content = block
        .content()
        .map_err(|error| format!("content: {error}"))?;
    let source = block.source.as_ref();
    let source = source.and_then(|json| json.read::<String>().ok());
    let title = block.title.as_deref().unwrap_or_default();
    let text = content.as_ref().map(Content::text).unwrap_or_default();
    let source = source.unwrap_or_default();
    let lines = [title, &source, &text].into_iter();
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    Ok(lines.join("\n"))
}

fn object_part(kind: &'static str, value: &serde_json::Value) -> ContentPart<'static> {
    let mut part = ContentPart {
        kind: Some(kind.into()),
        ..ContentPart::default()
    };
    part.unknown.set(kind, Json::new(value));
    part
}

fn titled(title: &str, text: &str) -> String {
    if title.is_empty() {
        return text.to_owned();
    }
    format!("{title}\n\n{text}")
}

/// Returns the URL of a source. Data becomes a data URL.
fn url(source: &Source<'_>) -> String {
    match &source.url {
        Some(url) => url.clone().into_owned(),
        None => format!(
            "data:{};base64,{}",
            source.media_type.as_deref().unwrap_or_default(),
            source.data.as_deref().unwrap_or_default()
        ),
    }
}

/// Creates a content. Texts that follow each other become one, because servers join them in various ways.
fn content_of<'r>(parts: Vec<ContentPart<'r>>, separator: &str) -> openai::Content<'r> {
    let mut merged: Vec<ContentPart<'r>> = Vec::with_capacity(parts.len());
    for part in parts {
        match (
            merged.last_mut().and_then(|last| last.text.as_mut()),
            &part.text,
        ) {
            (Some(last), Some(text)) => {
                let last = last.to_mut();
                last.push_str(separator);
                last.push_str(text);
            }
            _ => merged.push(part),
        }
    }
    match merged.pop() {
        None => "".into(),
        Some(ContentPart {
            text: Some(text), ..
        }) if merged.is_empty() => openai::Content::Text(text),
        Some(last) => {
            merged.push(last);
            openai::Content::Parts(merged)
        }
    }
}

/// Joins texts; borrows if there is only one.
pub(super) fn joined<'r>(texts: Vec<Cow<'r, str>>, separator: &str) -> Cow<'r, str> {
    let mut texts = texts.into_iter();
    let mut joined = texts.next().unwrap_or_default();
    for text in texts {
        let joined = joined.to_mut();
        joined.push_str(separator);
        joined.push_str(&text);
    }
    joined
}

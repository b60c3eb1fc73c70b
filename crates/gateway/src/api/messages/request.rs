//! Converts a request to a chat completions request.

mod contents;

use std::borrow::Cow;
use std::collections::BTreeMap;

use plaincall_wire::Json;
use plaincall_wire::anthropic::{
    Content, Message, MessagesRequest, OutputFormat, Thinking, Tool, ToolChoice,
};
use plaincall_wire::openai::{self, ChatCompletionRequest};

use crate::api::messages::request::contents::Contents;
use crate::error::GatewayError;

/// The beginning of a system text that some clients change in each request, which would make prompt caches useless.
const BILLING: &str = "x-anthropic-billing-header";
/// The beginning of the type of a tool with which Anthropic's servers find deferred tools.
const HOSTED_SEARCH: &str = "tool_search_tool_";

/// The field of a tool with examples of its input.
const EXAMPLES: &str = "input_examples";

/// The parameters that model servers know by the same name.
const SAME: [&str; 4] = ["temperature", "top_p", "top_k", "max_tokens"];

/// Returns whether the client wants the model's reasoning. The API sends none to others.
pub(super) fn shows_thinking(request: &MessagesRequest<'_>) -> bool {
    let thinking = request.thinking.as_ref();
    let thinking = thinking.and_then(|json| json.read::<Thinking<'_>>().ok());
    thinking.is_some_and(|thinking| {
        let is_enabled = thinking
            .kind
            .as_deref()
            .is_some_and(|kind| kind != "disabled");
        is_enabled && thinking.display.as_deref() != Some("omitted")
    })
}

pub(super) fn chat_request(
    mut request: MessagesRequest<'_>,
) -> Result<ChatCompletionRequest<'_>, GatewayError> {
    let mut chat = ChatCompletionRequest {
        model: request.model.take(),
        stream: request.stream,
        tools: tools(request.tools.as_deref()),
        response_format: response_format(&mut request),
        ..ChatCompletionRequest::default()
    };
    if let Some(choice) = request.tool_choice.take() {
        let is_single = choice.disable_parallel_tool_use == Some(true);
        chat.parallel_tool_calls = is_single.then_some(false);
        chat.tool_choice = Some(tool_choice(choice)?);
    }
    if chat.is_streamed() {
        chat.stream_options = Some(openai::StreamOptions {
            include_usage: Some(true),
            ..openai::StreamOptions::default()
        });
    }
    if let Some(most) = request.max_tokens {
        request.unknown.set("max_tokens", Json::new(&most));
    }
    for name in SAME {
        if let Some(value) = request.unknown.get(name).filter(|value| !value.is_null()) {
            chat.unknown.set(name, value.clone());
        }
    }
    let stops = request.stop_sequences.take().unwrap_or_default();
    if !stops.is_empty() {
        chat.unknown.set("stop", Json::new(&stops));
    }
    let mut contents = Contents::default();
    contents.system(request.system.take().and_then(system_text));
    for (index, message) in request.messages.into_iter().enumerate() {
        add(&mut contents, message).map_err(|error| error.under(index))?;
    }
    chat.messages = contents.into_messages();
    Ok(chat)
}

/// An error in a message.
pub(super) struct InvalidBlock {
    message: String,
    /// The place in the message, such as `.content[1]`.
    place: String,
}

impl InvalidBlock {
    fn new(message: impl Into<String>, place: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: place.into(),
        }
    }

    fn under(self, index: usize) -> GatewayError {
        let place = format!("messages[{index}]{}", self.place);
        let message = format!("{place}: {}", self.message);
        GatewayError::invalid_request(message, Some(&place))
    }
}

fn add<'r>(contents: &mut Contents<'r>, message: Message<'r>) -> Result<(), InvalidBlock> {
    let content = message.content.unwrap_or_else(|| "".into());
    match message.role.as_deref() {
        Some("user") => contents.user(content),
        Some("assistant") => {
            contents.assistant(content);
            Ok(())
        }
        Some("system") => {
            contents.system(system_text(content));
            Ok(())
        }
        _ => Err(InvalidBlock::new(
            "unknown role; it must be `user`, `assistant` or `system`",
            ".role",
        )),
    }
}

/// Returns the text of a system prompt.
fn system_text(content: Content<'_>) -> Option<Cow<'_, str>> {
    let text = match content {
        Content::Text(text) => match text.strip_prefix(BILLING) {
            // The rest of the prompt follows on the next line.
            Some(rest) => {
                let rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
                Cow::Owned(rest.trim_start().to_owned())
            }
            None => text,
        },
        Content::Blocks(blocks) => {
            let texts = blocks.into_iter().filter_map(|block| block.text);
            let texts = texts.enumerate().filter(|(index, text)| {
                let is_billing = *index == 0 && text.starts_with(BILLING);
                !is_billing && !text.is_empty()
            });
            let texts: Vec<Cow<'_, str>> = texts.map(|(_, text)| text).collect();
            contents::joined(texts, "\n\n")
        }
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Converts the definitions of tools. Tools of other kinds are passed on, and reported as dropped.
fn tools(given: Option<&[Json<'_>]>) -> Option<Json<'static>> {
    let given = given?;
    let read = given.iter().map(|json| json.read::<Tool<'_>>().ok());
    let read: Vec<Option<Tool<'_>>> = read.collect();
    // The gateway does not search, so all tools are listed.
    let is_hosted_search = read.iter().flatten().any(|tool| {
        tool.kind
            .as_deref()
            .is_some_and(|kind| kind.starts_with(HOSTED_SEARCH))
    });
    let mut list = b"[".to_vec();
    for (json, tool) in given.iter().zip(read) {
        if list.len() > 1 {
            list.push(b',');
        }
        match tool.filter(|tool| matches!(tool.kind.as_deref(), None | Some("custom"))) {
            Some(tool) => {
                let is_deferred = tool.defer_loading == Some(true) && !is_hosted_search;
                plaincall_wire::write_to(&function(tool, is_deferred), &mut list);
            }
            None => plaincall_wire::write_to(json, &mut list),
        }
    }
    list.push(b']');
    let list = String::from_utf8(list).unwrap_or_default();
    Json::parse(&list).ok().map(Json::into_owned)
}

fn function(tool: Tool<'_>, is_deferred: bool) -> openai::Tool<'_> {
    let examples = tool.unknown.get(EXAMPLES).cloned();
    let mut function = openai::Tool {
        kind: Some("function".into()),
        function: Some(openai::FunctionDefinition {
            name: tool.name,
            description: tool.description,
            parameters: tool.input_schema,
            strict: tool.strict,
            ..openai::FunctionDefinition::default()
        }),
        ..openai::Tool::default()
    };
    if let (Some(function), Some(examples)) = (&mut function.function, examples) {
        function.unknown.set(EXAMPLES, examples);
    }
    if is_deferred {
        let name = crate::tools::DEFER_LOADING;
        function.unknown.set(name, Json::new(&true));
    }
    function
}

fn tool_choice(choice: ToolChoice<'_>) -> Result<openai::ToolChoice<'_>, GatewayError> {
    let word = |word: &'static str| Ok(openai::ToolChoice::Word(word.into()));
    match (choice.kind.as_deref(), choice.name) {
        (Some("auto"), _) => word("auto"),
        (Some("any"), _) => word("required"),
        (Some("none"), _) => word("none"),
        (Some("tool"), Some(name)) => Ok(openai::ToolChoice::Object(Box::new(
            openai::ToolChoiceObject {
                kind: Some("function".into()),
                function: Some(openai::NamedTool {
                    name: Some(name),
                    ..openai::NamedTool::default()
                }),
                ..openai::ToolChoiceObject::default()
            },
        ))),
        _ => {
            let message = "invalid `tool_choice`; its `type` must be `auto`, `any`, `none`, or `tool` with a `name`";
            Err(GatewayError::invalid_request(message, Some("tool_choice")))
        }
    }
}

/// Converts the format of the text.
fn response_format<'r>(request: &mut MessagesRequest<'r>) -> Option<openai::ResponseFormat<'r>> {
    let format = request.output_config.take();
    let format = format.and_then(|config| config.format);
    let format = format.or_else(|| {
        // The name in a beta of the API.
        let format = request.unknown.get("output_format")?;
        let format = format.read::<OutputFormat<'_>>().ok()?;
        Some(format.into_owned())
    })?;
    let name = Json::new(&"output");
    let form = BTreeMap::from([("name", name), ("schema", format.schema?)]);
    Some(openai::ResponseFormat {
        kind: Some("json_schema".into()),
        json_schema: Some(Json::new(&form)),
        ..openai::ResponseFormat::default()
    })
}

//! Converts a request to a chat completions request.

use plaincall_wire::openai::{ChatCompletionRequest, ResponseFormat, StreamOptions};
use plaincall_wire::openai_responses::ResponsesRequest;
use plaincall_wire::{Json, Unknown};
use serde_json::{Value, json};

use crate::api::responses::ResponsesNotes;
use crate::api::responses::input::{Conversation, additional_tools};
use crate::api::responses::tools::{Functions, ToolPlace, choice};
use crate::api::{ClientRequest, Notes};
use crate::error::GatewayError;
use crate::settings::ToolMode;

/// Fields that the model server does not receive: it has no such field, or another meaning for it.
const NOT_SENT: [&str; 9] = [
    "client_metadata",
    "context_management",
    "include",
    "max_tool_calls",
    "metadata",
    "prompt_cache_retention",
    "stream_options",
    "top_logprobs",
    "truncation",
];

/// Fields that the response repeats.
const REPEATED: [&str; 7] = [
    "metadata",
    "prompt_cache_key",
    "service_tier",
    "temperature",
    "top_p",
    "truncation",
    "user",
];

pub(crate) fn read(
    body: &[u8],
    mode: impl Fn(&str) -> ToolMode,
) -> Result<ClientRequest<'_>, GatewayError> {
    let mut request: ResponsesRequest<'_> =
        plaincall_wire::read(body).map_err(|error| GatewayError::unreadable_request(&error))?;
    check_stored(&request)?;
    let options = repeated(&request);
    let input = std::mem::take(&mut request.input);
    let additional = additional_tools(&input)?;
    let given = request.tools();
    let given =
        given.map_err(|error| GatewayError::invalid_request(error.to_string(), Some("tools")))?;
    let given = given.into_iter().enumerate();
    let given = given.map(|(index, tool)| (ToolPlace::new(None, index), tool));
    let mut tools: Vec<(ToolPlace, Json<'_>)> = given.collect();
    for (place, tool) in additional {
        // A conversation may have the same tools several times.
        if !tools.iter().any(|(_, known)| *known == tool) {
            tools.push((place, tool));
        }
    }
    let mode = mode(request.model.as_deref().unwrap_or_default());
    let functions = Functions::of(&tools, mode);
    let messages = Conversation::read(request.instructions.take(), input, &functions.names)?;
    let tool_choice = match &request.tool_choice {
        Some(given) => choice(given, &functions.names)?,
        None => None,
    };
    let is_streamed = request.stream == Some(true);
    let mut chat = ChatCompletionRequest {
        model: request.model.take(),
        messages,
        tools: functions.list(),
        tool_choice,
        parallel_tool_calls: request.parallel_tool_calls,
        response_format: response_format(&request),
        stream: request.stream,
        stream_options: is_streamed.then(|| StreamOptions {
            include_usage: Some(true),
            ..StreamOptions::default()
        }),
        ..ChatCompletionRequest::default()
    };
    if let Some(limit) = request.max_output_tokens {
        chat.unknown.set("max_tokens", Json::new(&limit));
    }
    let reasoning = request.reasoning.as_ref();
    let text = request.text.as_ref();
    for (name, value) in [
        (
            "reasoning_effort",
            reasoning.and_then(|one| one.effort.as_ref()),
        ),
        ("verbosity", text.and_then(|text| text.verbosity.as_ref())),
    ] {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            chat.unknown.set(name, value.clone());
        }
    }
    for (name, value) in request.unknown.iter() {
        if !NOT_SENT.contains(&name) {
            chat.unknown.set(name.to_owned(), value.clone());
        }
    }
    let notes = ResponsesNotes {
        is_streamed,
        model: chat.model.as_deref().unwrap_or_default().to_owned(),
        names: functions.names,
        places: functions.places,
        options,
    };
    Ok(ClientRequest {
        chat,
        notes: Notes::Responses(notes),
    })
}

/// Rejects requests that need something stored.
fn check_stored(request: &ResponsesRequest<'_>) -> Result<(), GatewayError> {
    let given = |json: &Option<Json<'_>>| json.as_ref().is_some_and(|json| !json.is_null());
    let (field, fix) = if given(&request.previous_response_id) {
        (
            "previous_response_id",
            "send the whole conversation in `input`",
        )
    } else if given(&request.conversation) {
        ("conversation", "send the whole conversation in `input`")
    } else if given(&request.prompt) {
        ("prompt", "send its text in `instructions`")
    } else if request.background == Some(true) {
        ("background", "remove it, and read the response as a stream")
    } else {
        return Ok(());
    };
    let message =
        format!("`{field}` is not supported, because the gateway stores no responses: {fix}");
    Err(GatewayError::invalid_request(message, Some(field)))
}

/// Returns the options that the response repeats. It does not repeat long ones: instructions and tools.
fn repeated(request: &ResponsesRequest<'_>) -> Unknown<'static> {
    let mut options = Unknown::default();
    let is_parallel = request.parallel_tool_calls.unwrap_or(true);
    let choice = request.tool_choice.clone().map(Json::into_owned);
    let choice = choice.unwrap_or_else(|| Json::new(&"auto"));
    let null = Json::default;
    options.set("background", Json::new(&false));
    options.set("instructions", null());
    let limit = request.max_output_tokens;
    options.set("max_output_tokens", Json::new(&limit));
    options.set("parallel_tool_calls", Json::new(&is_parallel));
    options.set("previous_response_id", null());
    let written = |json: String| Json::parse(&json).map(Json::into_owned).unwrap_or_default();
    let reasoning = request.reasoning.as_ref().map(plaincall_wire::write);
    options.set("reasoning", reasoning.map_or_else(null, written));
    options.set("store", Json::new(&false));
    let text = request.text.as_ref().map(plaincall_wire::write);
    let plain = || Json::new(&json!({"format": {"type": "text"}}));
    options.set("text", text.map_or_else(plain, written));
    options.set("tool_choice", choice);
    options.set("tools", Json::new(&json!([])));
    for name in REPEATED {
        if let Some(value) = request.unknown.get(name) {
            options.set(name, value.clone().into_owned());
        }
    }
    options
}

/// Converts `text.format`.
fn response_format(request: &ResponsesRequest<'_>) -> Option<ResponseFormat<'static>> {
    let format = request.text.as_ref()?.format.as_ref()?;
    let mut format = format.read::<Value>().ok()?;
    let kind = format.get("type")?.as_str()?.to_owned();
    let mut chat = ResponseFormat::default();
    match &*kind {
        "text" => return None,
        "json_schema" => {
            let fields = format.as_object_mut()?;
            fields.shift_remove("type");
            chat.json_schema = Some(Json::new(&format));
        }
        _ => {}
    }
    chat.kind = Some(kind.into());
    Some(chat)
}

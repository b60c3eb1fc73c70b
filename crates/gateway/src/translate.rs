//! Translates requests with tools to plain text.

mod client_texts;
mod conversation;
mod instructions;
mod json_texts;
mod message_order;
pub(crate) mod native;

use std::borrow::Cow;
use std::collections::HashSet;

use plaincall_prompt::few_shot::{FewShot, ShownCalls};
use plaincall_prompt::tool_entry;
use plaincall_reply::Untrusted;
use plaincall_syntax::{Dialect, DialectError};
use plaincall_wire::Json;
use plaincall_wire::openai::{
    ChatCompletionRequest, Content, ContentPart, Message, OLD_CALL, sets_stop_sequences,
};

use crate::counts::Counts;
use crate::error::GatewayError;
use crate::key::Secret;
use crate::reply::plan::{ReplyMode, ReplyPlan};
use crate::settings::{ArgumentMode, Markers, ModelSettings, ToolMode};
use crate::tool_cache::ToolCache;
use crate::tools::{Choice, OfferedTools, ToolPrompt, list_options};
use crate::translate::client_texts::Texts;
use crate::translate::conversation::{Conversation, has_calls};
use crate::translate::instructions::instructions;
use crate::translate::json_texts::Fields;
use crate::translate::message_order::{is_system, ordered};
use crate::translate::native::native;

/// The field of a result that states that its call failed. Other APIs than chat completions have it.
pub(crate) const IS_ERROR: &str = "is_error";
/// The kind of a part of a result that introduces a deferred tool by its `tool_name`.
pub(crate) const TOOL_REFERENCE: &str = "tool_reference";

/// A translated request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Translation<'r> {
    /// No reply to the request is changed: in text mode, it has no tools and no calls. Forward it and its reply unchanged. In text
    /// mode, fields about tools are removed.
    Unchanged(ChatCompletionRequest<'r>),
    /// The request was translated.
    Changed {
        /// The request for the model server. In native mode, it is the client's; only roles may differ.
        upstream: ChatCompletionRequest<'r>,
        /// The plan for reading the reply.
        plan: Box<ReplyPlan>,
    },
}

/// Translates a request with tools to plain text (`spec/gateway.md` 1); [`Reply`](crate::translation::Reply) has an example. All texts of
/// the client are untrusted and escaped. Instructions for the next reply are at the very end, so the text before is stable. In
/// native mode, tools and texts are not changed.
///
/// # Errors
/// Returns an error for invalid tools, choices and settings, and for `n` above 1.
pub fn translate<'r>(
    mut request: ChatCompletionRequest<'r>,
    settings: &ModelSettings,
    secret: &Secret,
    offers: &ToolCache,
) -> Result<Translation<'r>, GatewayError> {
    if settings.mode == ToolMode::Native {
        return native(request, settings, secret, offers);
    }
    reject_old_fields(&request)?;
    let offer = offers.read(&request)?;
    // The model then knows no syntax of calls.
    let is_plain = offer.is_empty() && !request.messages.iter().any(has_calls);
    if is_plain && offer.changed().is_empty() {
        Choice::read(&request, &offer)?;
        request.remove_tools();
        return Ok(Translation::Unchanged(request));
    }
    let is_misplaced =
        |message: &Message<'_>| message.role() != "assistant" && !message.calls().is_empty();
    if let Some(index) = request.messages.iter().position(is_misplaced) {
        let message = "only messages with the role `assistant` can have `tool_calls`";
        let param = format!("messages[{index}].tool_calls");
        return Err(GatewayError::invalid_request(message, Some(&param)));
    }
    let choice = Choice::read(&request, &offer)?;
    if request.n.is_some_and(|answers| answers != 1) {
        let message = "`n` must be 1 when tools are offered; remove it, or send several requests";
        return Err(GatewayError::invalid_request(message, Some("n")));
    }
    let form = request.response_format.as_ref();
    let form = form.and_then(|form| form.kind.as_deref());
    if choice != Choice::None
        && let Some(form) = form
        && !matches!(form, "text" | "json_object" | "json_schema")
    {
        let message = format!(
            "`response_format` of type `{form}` is not supported together with tools; remove it, or set `tool_choice` to `none`"
        );
        return Err(GatewayError::invalid_request(
            message,
            Some("response_format"),
        ));
    }
    let is_keyed = settings.markers == Markers::Keyed;
    let arguments = argument_mode(&request, &offer, settings);
    let may_repair = arguments == ArgumentMode::Checked && choice != Choice::None;
    let needs_texts = is_keyed || may_repair || settings.few_shot > 0;
    let texts = needs_texts.then(|| Texts::of(&request));
    let known = texts.as_ref().filter(|_| is_keyed);
    let key = known.map(|texts| key(&request, texts, secret));
    let one_call = request.parallel_tool_calls == Some(false);
    let prompt = offer.tool_prompt(settings, key, one_call);
    let prompt = prompt.map_err(|error| GatewayError::settings(&error))?;
    let mut examples = prompt.few_shot.calls.clone();
    for text in texts.iter().flat_map(Texts::not_of_model) {
        examples.observe(&Untrusted::new(text));
    }
    let untrusted = texts.filter(|_| may_repair).map(Texts::into_untrusted);
    let taken = ids(&request);
    let translated = translate_messages(&mut request, settings, secret, &prompt, &offer, &choice);
    translated.map_err(|error| GatewayError::settings(&error))?;

    let plan = ReplyPlan {
        compiled: prompt.compiled,
        untrusted: untrusted.unwrap_or_default().into(),
        examples,
        counts: Counts {
            hidden_tools: prompt.hidden,
            skipped_examples: prompt.skipped_examples,
            ..Counts::of_changed(offer.changed())
        },
        secret: secret.clone(),
        offer,
        choice,
        one_call,
        arguments,
        repair_rounds: settings.repair_rounds,
        stops_anywhere: sets_stop_sequences(request.unknown.iter()),
        includes_usage: request.includes_usage(),
        mode: if is_plain {
            ReplyMode::Text
        } else {
            ReplyMode::Calls
        },
        formats: Vec::new(),
        taken,
    };
    Ok(Translation::Changed {
        upstream: request,
        plan: Box::new(plan),
    })
}

/// Returns how arguments are sent.
fn argument_mode(
    request: &ChatCompletionRequest<'_>,
    offer: &OfferedTools,
    settings: &ModelSettings,
) -> ArgumentMode {
    if request.is_streamed() && !offer.is_strict() {
        settings.arguments
    } else {
        ArgumentMode::Checked
    }
}

/// Rejects the predecessors of tools.
fn reject_old_fields(request: &ChatCompletionRequest<'_>) -> Result<(), GatewayError> {
    if request.unknown.get("functions").is_some_and(Json::is_given) {
        let message = "`functions` is not supported; use `tools`";
        return Err(GatewayError::invalid_request(message, Some("functions")));
    }
    let is_old = |message: &Message<'_>| {
        let call = message.unknown.get(OLD_CALL);
        message.role() == "function" || call.is_some_and(|call| !call.is_null())
    };
    if let Some(index) = request.messages.iter().position(is_old) {
        let message = "`function_call` and the role `function` are not supported; use `tool_calls` and the role `tool`";
        let param = format!("messages[{index}]");
        return Err(GatewayError::invalid_request(message, Some(&param)));
    }
    Ok(())
}

/// Plans a reply whose text is sent as it is: that to a request without tools and without calls, for APIs other than the model
/// server's, or that of a model server that has tools itself.
///
/// # Errors
/// Returns an error for invalid settings.
pub(crate) fn plain_plan(
    request: &ChatCompletionRequest<'_>,
    settings: &ModelSettings,
    secret: &Secret,
    offers: &ToolCache,
) -> Result<ReplyPlan, GatewayError> {
    let offer = offers.read(request)?;
    let prompt = offer.tool_prompt(settings, None, false);
    let prompt = prompt.map_err(|error| GatewayError::settings(&error))?;
    Ok(ReplyPlan {
        compiled: prompt.compiled,
        untrusted: std::sync::Arc::default(),
        examples: ShownCalls::default(),
        counts: Counts::default(),
        secret: secret.clone(),
        offer,
        choice: Choice::None,
        one_call: false,
        arguments: ArgumentMode::Checked,
        repair_rounds: 0,
        stops_anywhere: false,
        includes_usage: request.includes_usage(),
        mode: match settings.mode {
            ToolMode::Text => ReplyMode::Text,
            ToolMode::Native => ReplyMode::Native,
        },
        formats: Vec::new(),
        taken: HashSet::new(),
    })
}

/// Translates the messages and adds the prompt and the instructions for this reply.
fn translate_messages(
    request: &mut ChatCompletionRequest<'_>,
    settings: &ModelSettings,
    secret: &Secret,
    prompt: &ToolPrompt,
    offer: &OfferedTools,
    choice: &Choice,
) -> Result<(), DialectError> {
    let compiled = &*prompt.compiled;
    let mut conversation = Conversation::new(compiled, offer, secret, settings);
    for message in ordered(std::mem::take(&mut request.messages), settings) {
        conversation.add(message)?;
    }
    let mut messages = conversation.finish()?;
    if !offer.is_empty() {
        add_to_system(&mut messages, &prompt.prompt);
    }
    add_examples(&mut messages, &prompt.few_shot);
    // A server that enforces `response_format` would prevent calls.
    let form = if offer.is_empty() || *choice == Choice::None {
        None
    } else {
        request.response_format.take()
    };
    let kept = request.response_format.as_ref();
    let mut text = instructions(choice, offer, form.as_ref(), kept);
    text.push_str(&unlisted(choice, offer, settings, &compiled.dialect)?);
    if !text.is_empty() {
        let text = compiled.prompt_text.escape(Untrusted::new(text));
        add_instruction(&mut messages, &text);
    }
    request.messages = messages;
    json_texts::escape(&mut request.unknown, Fields::Request, &compiled.prompt_text);
    request.remove_tools();
    Ok(())
}

/// Returns the definitions of the tools that the choice names and the prompt does not list.
fn unlisted(
    choice: &Choice,
    offer: &OfferedTools,
    settings: &ModelSettings,
    dialect: &Dialect,
) -> Result<String, DialectError> {
    let mut text = String::new();
    let Choice::Only { names, .. } = choice else {
        return Ok(text);
    };
    let unlisted = names.iter().filter(|name| !offer.is_listed(name, settings));
    for tool in unlisted.filter_map(|name| offer.get(name)) {
        text.push_str("\n\n");
        text.push_str(&tool_entry(tool, dialect, &list_options(settings))?);
    }
    Ok(text)
}

/// Adds the messages of few-shot examples after the first system messages.
fn add_examples(messages: &mut Vec<Message<'_>>, few_shot: &FewShot) {
    let first = messages
        .iter()
        .take_while(|message| is_system(message))
        .count();
    let shown = few_shot.messages.iter().map(|message| {
        let role = if message.is_of_model {
            "assistant"
        } else {
            "user"
        };
        Message::new(role, message.text.clone())
    });
    messages.splice(first..first, shown);
}

/// Adds an instruction for the next reply only.
fn add_instruction(messages: &mut Vec<Message<'_>>, text: &str) {
    match messages.last_mut() {
        Some(last) if matches!(last.role(), "user" | "system") => append(last, text),
        _ => add_to_system(messages, text),
    }
}

/// Appends a text to the first system message, or creates one.
fn add_to_system(messages: &mut Vec<Message<'_>>, text: &str) {
    match messages.first_mut() {
        Some(first) if is_system(first) => append(first, text),
        _ => messages.insert(0, Message::new("system", text.to_owned())),
    }
}

/// Appends a text to the content of a message after an empty line.
fn append(message: &mut Message<'_>, text: &str) {
    message.content = match message.content.take() {
        Some(Content::Text(before)) if !before.is_empty() => {
            Some([&*before, "\n\n", text].concat().into())
        }
        Some(parts @ Content::Parts(_)) => {
            joined(Some(parts), Some(["\n\n", text].concat().into()))
        }
        _ => Some(text.to_owned().into()),
    };
}

/// Concatenates two contents.
fn joined<'t>(before: Option<Content<'t>>, after: Option<Content<'t>>) -> Option<Content<'t>> {
    let parts = |content| match content {
        Content::Parts(parts) => parts,
        Content::Text(text) => vec![text_part(text)],
    };
    match (before, after) {
        (Some(Content::Text(before)), Some(Content::Text(after))) => {
            Some((before.into_owned() + &after).into())
        }
        (Some(before), Some(after)) => {
            let (mut all, after) = (parts(before), parts(after));
            all.extend(after);
            Some(Content::Parts(all))
        }
        (before, after) => before.or(after),
    }
}

pub(crate) fn text_part(text: Cow<'_, str>) -> ContentPart<'_> {
    ContentPart {
        kind: Some("text".into()),
        text: Some(text),
        ..ContentPart::default()
    }
}

fn ids(request: &ChatCompletionRequest<'_>) -> HashSet<String> {
    let calls = request.messages.iter().flat_map(Message::calls);
    let ids = calls.filter_map(|call| call.id.as_deref());
    ids.map(str::to_owned).collect()
}

/// Returns the marker key of the conversation, which appears in none of its texts.
fn key(request: &ChatCompletionRequest<'_>, texts: &Texts<'_>, secret: &Secret) -> String {
    let mut messages = request.messages.iter();
    let first = messages.find(|message| message.role() == "user");
    let first = first
        .and_then(|message| message.content.as_ref())
        .map(Content::text);
    secret.marker_key(&first.unwrap_or_default(), |key| {
        texts.iter().any(|text| text.contains(key))
    })
}

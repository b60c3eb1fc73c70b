//! Requests to a model server that has tools itself (`spec/gateway.md` 11).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use plaincall_wire::Json;
use plaincall_wire::openai::{
    ChatCompletionRequest, Choose, Content, ContentPart, Message, ToolChoice, sets_stop_sequences,
};
use serde_json::{Map, Value, json};

use crate::error::GatewayError;
use crate::key::Secret;
use crate::settings::ModelSettings;
use crate::tool_cache::ToolCache;
use crate::tools::{Choice, DEFER_LOADING};
use crate::translate::client_texts::Texts;
use crate::translate::instructions::describe_format;
use crate::translate::message_order::{ModelMessages, Writer, ordered};
use crate::translate::{
    IS_ERROR, TOOL_REFERENCE, Translation, add_instruction, argument_mode, ids, plain_plan,
    text_part,
};

/// Plans the reply to a request that is sent unchanged. A request whose reply can have no call as text, or needs its text as
/// it is, is [`Translation::Unchanged`].
///
/// # Errors
/// Returns an error for tools that exceed the limits, and for invalid settings.
pub(super) fn native<'r>(
    request: ChatCompletionRequest<'r>,
    settings: &ModelSettings,
    secret: &Secret,
    offers: &ToolCache,
) -> Result<Translation<'r>, GatewayError> {
    let plan = plain_plan(&request, settings, secret, offers)?;
    // The model server reports an invalid choice.
    let choice = Choice::read(&request, &plan.offer).unwrap_or(Choice::None);
    let wants_probabilities = request
        .unknown
        .get("logprobs")
        .is_some_and(|json| json.text() == "true");
    let is_single = request.n.is_none_or(|answers| answers == 1);
    if choice == Choice::None || wants_probabilities || !is_single {
        return Ok(Translation::Unchanged(request));
    }
    let mut plan = Box::new(plan);
    plan.choice = choice;
    plan.formats = settings.formats_of(request.model.as_deref().unwrap_or_default());
    // The model is asked once more; what it writes then is text.
    plan.repair_rounds = settings.repair_rounds.min(1);
    plan.one_call = request.parallel_tool_calls == Some(false);
    plan.arguments = argument_mode(&request, &plan.offer, settings);
    plan.untrusted = Texts::of(&request).into_untrusted().into();
    plan.taken = ids(&request);
    plan.stops_anywhere = sets_stop_sequences(request.unknown.iter());
    Ok(Translation::Changed {
        upstream: request,
        plan,
    })
}

/// The fields of a function that a model server knows.
const FUNCTION_FIELDS: [&str; 4] = ["name", "description", "parameters", "strict"];

/// Completes a request that was converted from another API: the model server gets its tools as functions, and results as text.
/// Returns the places of the functions in the list. Other tools, and further ones with the same name, are dropped. A response format
/// beside tools becomes an instruction.
///
/// # Errors
/// Returns an error if a call is required and no tool is left.
pub(crate) fn complete(
    request: &mut ChatCompletionRequest<'_>,
    settings: &ModelSettings,
) -> Result<HashSet<usize>, GatewayError> {
    let messages = std::mem::take(&mut request.messages);
    let (messages, introduced) = complete_messages(messages, settings);
    request.messages = messages;
    let given = request.tools().unwrap_or_default();
    let (mut places, mut names, mut functions) = (HashSet::new(), HashSet::new(), Vec::new());
    for (place, json) in given.iter().enumerate() {
        let Some((name, is_deferred, function)) = function(json) else {
            continue;
        };
        let is_sent = !is_deferred || introduced.contains(&name);
        if names.insert(name) {
            places.insert(place);
            functions.extend(is_sent.then_some(function));
        }
    }
    let choose = request.tool_choice.as_ref().map(ToolChoice::choose);
    let may_call = choose != Some(Choose::None);
    let is_required = choose.is_some_and(|choose| choose.is_required());
    if functions.is_empty() {
        if is_required {
            let message = "`tool_choice` requires a call, but none of `tools` can be sent to the model server";
            return Err(GatewayError::invalid_request(message, Some("tool_choice")));
        }
        request.tools = None;
        request.tool_choice = None;
        request.parallel_tool_calls = None;
        return Ok(places);
    }
    request.tools = Some(Json::new(&functions));
    // A server that enforces it would prevent calls.
    let form = request.response_format.take_if(|_| may_call);
    if let Some(text) = form
        .filter(|_| !is_required)
        .as_ref()
        .and_then(describe_format)
    {
        add_instruction(&mut request.messages, &text);
    }
    Ok(places)
}

/// Converts the messages of another API to those that model servers accept: what is in a result besides text is in a message of
/// the user after the results. Returns the names of deferred tools in results too.
pub(crate) fn complete_messages<'r>(
    messages: Vec<Message<'r>>,
    settings: &ModelSettings,
) -> (Vec<Message<'r>>, Vec<String>) {
    let (mut introduced, mut names, mut others) = (Vec::new(), HashMap::new(), Vec::new());
    let mut completed = ModelMessages::new(settings);
    for mut message in ordered(messages, settings) {
        if message.role() == "tool" {
            let more = complete_result(&mut message, &mut introduced);
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            let name = names.get(id).map_or("", String::as_str);
            if !more.is_empty() {
                others.push(text_part(
                    format!("More output of the tool {name}:\n").into(),
                ));
                others.extend(more);
            }
            completed.push(message, None, |line| line);
            continue;
        }
        push_others(&mut completed, &mut others);
        let calls = message.calls().iter();
        names.extend(calls.map(|call| {
            let id = call.id.as_deref().unwrap_or_default();
            (id.to_owned(), call.name().to_owned())
        }));
        let writer = completed.writer(&message);
        if let (Some(Writer::User), Some(content)) = (writer, &mut message.content) {
            completed.escape_line(content);
        }
        completed.push(message, writer, |line| line);
    }
    push_others(&mut completed, &mut others);
    (completed.into_messages(), introduced)
}

fn push_others<'r>(messages: &mut ModelMessages<'r>, others: &mut Vec<ContentPart<'r>>) {
    if !others.is_empty() {
        let mut message = Message::new("user", "");
        message.content = Some(Content::Parts(std::mem::take(others)));
        messages.push(message, Some(Writer::Tools), |line| line);
    }
}

/// Converts the content of a result to one text, because tool messages may have no other. Returns the other parts, and adds the
/// names of deferred tools.
fn complete_result<'r>(
    message: &mut Message<'r>,
    introduced: &mut Vec<String>,
) -> Vec<ContentPart<'r>> {
    let (mut texts, mut others) = (Vec::new(), Vec::new());
    match message.content.take() {
        None => {}
        Some(Content::Text(text)) => texts.push(text),
        Some(Content::Parts(parts)) => {
            for part in parts {
                if part.kind.as_deref() == Some(TOOL_REFERENCE) {
                    let name = part.unknown.get("tool_name");
                    let name = name.and_then(|json| json.read::<String>().ok());
                    let name = name.unwrap_or_default();
                    texts.push(format!("The tool {name} is available now.").into());
                    introduced.push(name);
                } else if let Some(text) = part.text {
                    texts.push(text);
                } else {
                    others.push(part);
                }
            }
        }
    }
    let mut text = match (texts.len(), texts.pop()) {
        (1, Some(text)) => text,
        (_, last) => {
            texts.extend(last);
            Cow::Owned(texts.join("\n"))
        }
    };
    if text.is_empty() && !others.is_empty() {
        text = "The output is in the next message.".into();
    }
    if message.unknown.get(IS_ERROR).is_some() {
        message.unknown.remove(IS_ERROR);
        text.to_mut().insert_str(0, "Error: ");
    }
    message.content = Some(Content::Text(text));
    others
}

/// Returns the name of a function, whether it is deferred, and the function as the model server knows it.
fn function(json: &Json<'_>) -> Option<(String, bool, Value)> {
    let mut given: Map<String, Value> = json.read().ok()?;
    if given.get("type").is_some_and(|kind| kind != "function") {
        return None;
    }
    // In the Responses API, the fields of a function are those of the tool.
    let is_deferred = given.get(DEFER_LOADING) == Some(&Value::Bool(true));
    let mut given = match given.remove("function") {
        Some(Value::Object(function)) => function,
        _ => given,
    };
    let name = given
        .get("name")?
        .as_str()
        .filter(|name| !name.is_empty())?;
    let name = name.to_owned();
    given.retain(|field, _| FUNCTION_FIELDS.contains(&&**field));
    let function = json!({"type": "function", "function": given});
    Some((name, is_deferred, function))
}

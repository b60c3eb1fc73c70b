//! Requests to a model server that has tools itself (`spec/gateway.md` 11).

use std::collections::HashSet;

use plaincall_wire::Json;
use plaincall_wire::openai::{
    ChatCompletionRequest, Choose, Content, ContentPart, Message, ToolChoice,
};
use serde_json::{Map, Value, json};

use crate::error::GatewayError;
use crate::key::Secret;
use crate::settings::ModelSettings;
use crate::tool_cache::ToolCache;
use crate::tools::{Choice, DEFER_LOADING};
use crate::translate::client_texts::Texts;
use crate::translate::instructions::describe_format;
use crate::translate::{
    IS_ERROR, TOOL_REFERENCE, Translation, add_instruction, ids, joined, plain_plan,
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
    // The model is asked once more; what it writes then is text.
    plan.repair_rounds = settings.repair_rounds.min(1);
    plan.one_call = request.parallel_tool_calls == Some(false);
    plan.untrusted = Texts::of(&request).into_untrusted().into();
    plan.taken = ids(&request);
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
) -> Result<HashSet<usize>, GatewayError> {
    let mut introduced = Vec::new();
    for message in &mut request.messages {
        if message.role() == "tool" {
            complete_result(message, &mut introduced);
        }
    }
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
    let is_required = choose.is_some_and(|choose| match choose {
        Choose::Required | Choose::Named(_) => true,
        Choose::Allowed { is_required, .. } => is_required,
        _ => false,
    });
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

/// Converts the fields of a result that chat completions do not have. Adds the names of deferred tools in it.
fn complete_result(message: &mut Message<'_>, introduced: &mut Vec<String>) {
    if let Some(Content::Parts(parts)) = &mut message.content {
        let references = parts.iter_mut();
        for part in references.filter(|part| part.kind.as_deref() == Some(TOOL_REFERENCE)) {
            let name = part.unknown.get("tool_name");
            let name = name.and_then(|json| json.read::<String>().ok());
            let name = name.unwrap_or_default();
            *part = ContentPart {
                kind: Some("text".into()),
                text: Some(format!("The tool {name} is available now.").into()),
                ..ContentPart::default()
            };
            introduced.push(name);
        }
    }
    if message.unknown.get(IS_ERROR).is_some() {
        message.unknown.remove(IS_ERROR);
        message.content = joined(Some("Error: ".into()), message.content.take());
    }
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

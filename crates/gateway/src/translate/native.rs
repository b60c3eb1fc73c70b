//! Requests to a model server that has tools itself (`spec/gateway.md` 11).

use plaincall_wire::openai::ChatCompletionRequest;

use crate::error::GatewayError;
use crate::key::Secret;
use crate::settings::ModelSettings;
use crate::tool_cache::ToolCache;
use crate::tools::Choice;
use crate::translate::client_texts::Texts;
use crate::translate::{Translation, ids, plain_plan};

/// Plans the reply to a request that is sent unchanged. A request whose reply can have no call as text, or needs its text as
/// it is, is [`Translation::Unchanged`].
///
/// # Errors
/// Returns an error for tools that exceed the limits, and for invalid settings.
pub(super) fn native<'r>(
    mut request: ChatCompletionRequest<'r>,
    settings: &ModelSettings,
    secret: &Secret,
    offers: &ToolCache,
) -> Result<Translation<'r>, GatewayError> {
    let plan = plain_plan(&mut request, settings, secret, offers)?;
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
    plan.one_call = request.parallel_tool_calls == Some(false);
    plan.untrusted = Texts::of(&request).into_untrusted().into();
    plan.taken = ids(&request);
    Ok(Translation::Changed {
        upstream: request,
        plan,
    })
}

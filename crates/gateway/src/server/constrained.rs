//! Requests with a grammar: which get one, and what happens if the model server rejects it (`spec/gateway.md` 12).

use std::sync::Arc;

use http::HeaderMap;
use plaincall_grammar::{Constrain, Engine, GrammarError};
use plaincall_wire::openai::{Model, constrained};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::adapter::Asked;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::server::chat::prepare::without_blocking;
use crate::server::report::RequestGuard;
use crate::server::upstream::{Answer, Connection, DetectedEngines};
use crate::server::{Shared, models};

/// Returns the engine of a model, which the server's list of models names. Requests the list once, and again after half a
/// minute if it names no engine.
async fn engine_of(
    server: &Connection,
    model: &str,
    headers: &HeaderMap,
) -> Result<Option<Engine>, GatewayError> {
    let mut detected = server.grammars.detected.lock().await;
    let detected = match detected.take().filter(DetectedEngines::is_current) {
        Some(current) => detected.insert(current),
        None => detected.insert(detect(server, headers).await),
    };
    detected.engine(model)
}

async fn detect(server: &Connection, headers: &HeaderMap) -> DetectedEngines {
    let models = models::fetch(server, headers).await;
    let owned = |model: Model<'_>| {
        let (id, owner) = model.id_and_owner();
        (id.to_owned(), owner.to_owned())
    };
    let models = models.map(|models| models.into_iter().map(owned).collect());
    let at = Instant::now();
    DetectedEngines { at, models }
}

/// A request to a model server, possibly with a grammar.
pub(super) struct ConstrainedRequest {
    /// Shared with the thread that reads a long reply.
    pub(super) asked: Arc<Mutex<Asked>>,
    /// Dropped with the request, also by a client that disconnects: a long reply is then not read to its end.
    _client: Arc<()>,
    upstream: Arc<Connection>,
    /// The model, if the request may be sent without its grammar.
    may_drop: Option<String>,
}

impl ConstrainedRequest {
    /// Adds a grammar, as the settings of the model demand.
    ///
    /// # Errors
    /// Returns an error if the settings demand a grammar and there can be none.
    pub(super) async fn new(
        shared: &Shared,
        mut asked: Box<Asked>,
        upstream: Arc<Connection>,
        model: &str,
        headers: &HeaderMap,
    ) -> Result<Self, GatewayError> {
        let settings = shared.config.settings_for(model);
        let constrain = settings.constrain;
        let model = settings.upstream_model.as_deref().unwrap_or(model);
        let request = Self {
            _client: asked.client(),
            asked: Arc::new(Mutex::new(*asked)),
            upstream,
            may_drop: (constrain == Constrain::Auto).then(|| model.to_owned()),
        };
        let support = &request.upstream.grammars;
        let engine = match constrain {
            Constrain::Never => return Ok(request),
            Constrain::For(engine) => engine,
            Constrain::Auto if support.rejected.contains(model) => return Ok(request),
            Constrain::Auto => match engine_of(&request.upstream, model, headers).await {
                Ok(Some(engine)) => engine,
                _ => return Ok(request),
            },
            Constrain::Always => engine_of(&request.upstream, model, headers)
                .await?
                .ok_or_else(unknown_engine)?,
        };
        let mut asked = Arc::clone(&request.asked).lock_owned().await;
        let length = if asked.knows_grammar(engine) {
            asked.body().len()
        } else {
            usize::MAX
        };
        let made = without_blocking(shared, length, move || asked.constrain(engine));
        match made.await? {
            Err(error) if request.may_drop.is_none() => Err(no_grammar(&error)),
            _ => Ok(request),
        }
    }

    /// Sends the next request. If the model server rejects its grammar, sends it again without.
    pub(super) async fn send(
        &mut self,
        headers: &HeaderMap,
        guard: &mut RequestGuard,
    ) -> Result<Answer, GatewayError> {
        let answer = self.send_once(headers, guard).await;
        let is_rejected = answer
            .as_ref()
            .is_err_and(|error| constrained::REJECTIONS.contains(&error.status));
        let is_dropped =
            is_rejected && self.may_drop.is_some() && self.asked.lock().await.unconstrain();
        let Some(model) = self.may_drop.take_if(|_| is_dropped) else {
            return answer;
        };
        let answer = self.send_once(headers, guard).await?;
        // The other request was the same but for the grammar.
        self.upstream.grammars.rejected.add(&model);
        self.asked.lock().await.add_counts(Counts {
            rejected_grammars: 1,
            ..Counts::default()
        });
        Ok(answer)
    }

    async fn send_once(
        &mut self,
        headers: &HeaderMap,
        guard: &mut RequestGuard,
    ) -> Result<Answer, GatewayError> {
        let body = self.asked.lock().await.take_body();
        guard.model_request(&body);
        self.upstream.complete(body, headers).await
    }
}

fn unknown_engine() -> GatewayError {
    let words = "the reply cannot be constrained: the model server's list of models names no engine that accepts a grammar";
    GatewayError::upstream(format!(
        "{words}; the operator of the gateway must set `constrain` to the engine or to `auto`"
    ))
    .log(words)
    .without_retry()
}

fn no_grammar(error: &GrammarError) -> GatewayError {
    GatewayError::invalid_request(
        format!("the reply cannot be constrained: {error}"),
        Some("tools"),
    )
}

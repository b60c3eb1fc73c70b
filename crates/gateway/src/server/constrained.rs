//! Requests with a grammar: which get one, and what happens if the model server rejects it (`spec/gateway.md` 12).

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use plaincall_grammar::{Constrain, Engine, GrammarError};
use plaincall_http::Rejections;
use plaincall_wire::openai::{Model, constrained};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::adapter::Asked;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::server::chat::prepare::without_blocking;
use crate::server::report::RequestGuard;
use crate::server::upstream::{Answer, Connection};
use crate::server::{Shared, models};

/// How long a list of models without an engine counts: the server may be starting.
const UNKNOWN: Duration = Duration::from_secs(30);

/// The engines of a model server, and whether it rejected a grammar.
#[derive(Debug, Default)]
pub(super) struct GrammarSupport {
    /// The lock is held while the list of models is requested, so that other requests wait for the same answer.
    detected: tokio::sync::Mutex<Option<Detected>>,
    /// The models whose grammars it rejected.
    rejected: Rejections,
}

/// The list of models, which names the engines.
#[derive(Debug)]
struct Detected {
    at: Instant,
    /// The id and the owner of each model.
    models: Result<Vec<(String, String)>, GatewayError>,
}

impl Detected {
    fn is_current(&self) -> bool {
        self.at.elapsed() < UNKNOWN || matches!(self.engine(""), Ok(Some(_)))
    }

    /// Returns the engine of a model; of no model, the first engine.
    fn engine(&self, model: &str) -> Result<Option<Engine>, GatewayError> {
        let models = self.models.as_ref().map_err(Clone::clone)?;
        let owners = models.iter().map(|(id, owner)| (&**id, &**owner));
        Ok(constrained::engine_of(owners, model))
    }
}

impl GrammarSupport {
    /// Returns the engine of a model, which the server's list of models names. Requests the list once, and again after half a
    /// minute if it names no engine.
    async fn engine(
        &self,
        server: &Connection,
        model: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Engine>, GatewayError> {
        let mut detected = self.detected.lock().await;
        let detected = match detected.take().filter(Detected::is_current) {
            Some(current) => detected.insert(current),
            None => detected.insert(detect(server, headers).await),
        };
        detected.engine(model)
    }
}

async fn detect(server: &Connection, headers: &HeaderMap) -> Detected {
    let models = models::fetch(server, headers).await;
    let owned = |model: Model<'_>| {
        let (id, owner) = model.id_and_owner();
        (id.to_owned(), owner.to_owned())
    };
    let models = models.map(|models| models.into_iter().map(owned).collect());
    let at = Instant::now();
    Detected { at, models }
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
            Constrain::Auto => match support.engine(&request.upstream, model, headers).await {
                Ok(Some(engine)) => engine,
                _ => return Ok(request),
            },
            Constrain::Always => support
                .engine(&request.upstream, model, headers)
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

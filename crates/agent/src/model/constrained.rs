//! Requests with a grammar: which get one, and what happens if the server rejects it (`spec/agent.md` 9).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plaincall_grammar::{Constrain, Engine, Grammar};
use plaincall_http::{Rejections, Waits};
use plaincall_wire::openai::{Model, ModelList, constrained};
use plaincall_wire::paths;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::answer::{Answered, failed};
use super::client::Client;
use super::server_error::Asked;
use super::{ModelError, ModelErrorKind, ModelRequest, OpenAi};
use crate::grammar::without_blocking;

/// The time limit for the list of models.
const LIST_TIME: Duration = Duration::from_secs(5);
/// The longest list of models, in bytes.
const LIST_BYTES: usize = 4 << 20;

/// The fields of a request that constrain its reply.
pub(super) type Fields = Map<String, Value>;

/// Whether a server gets grammars. Clones share what is known about the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Constrained {
    pub(super) constrain: Constrain,
    server: Arc<GrammarSupport>,
}

/// The engine of a server, and whether it rejected a grammar.
#[derive(Debug, Default)]
struct GrammarSupport {
    engine: OnceCell<Option<Engine>>,
    /// The models whose grammars it rejected.
    rejected: Rejections,
    printed: Mutex<Option<Printed>>,
}

/// The grammar of the last request, and its fields.
#[derive(Debug)]
struct Printed {
    grammar: Arc<Grammar>,
    engine: Engine,
    fields: Arc<Fields>,
}

impl GrammarSupport {
    /// Returns the fields for a grammar if the last request had it too.
    fn known_fields(&self, engine: Engine, grammar: &Arc<Grammar>) -> Option<Arc<Fields>> {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let printed = printed.as_ref()?;
        let is_same = Arc::ptr_eq(&printed.grammar, grammar) && printed.engine == engine;
        is_same.then(|| Arc::clone(&printed.fields))
    }

    async fn fields(self: &Arc<Self>, engine: Engine, grammar: &Arc<Grammar>) -> Arc<Fields> {
        if let Some(known) = self.known_fields(engine, grammar) {
            return known;
        }
        let (server, grammar) = (Arc::clone(self), Arc::clone(grammar));
        without_blocking(move || {
            let fields = Arc::new(grammar.request_fields(engine));
            let mut printed = server
                .printed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *printed = Some(Printed {
                grammar,
                engine,
                fields: Arc::clone(&fields),
            });
            fields
        })
        .await
    }
}

impl OpenAi {
    /// Sets whether replies to requests with a [grammar](ModelRequest::grammar) are constrained. Default: never. Fields that
    /// constrain the reply, such as `response_format`, take precedence.
    pub fn constrain(mut self, constrain: Constrain) -> Self {
        self.1 = Constrained {
            constrain,
            ..Constrained::default()
        };
        self
    }

    /// Returns the engine that constrains replies: the one that is set, or the one that the server's list of models names. The
    /// list is requested once.
    ///
    /// # Errors
    /// Returns an error if the server does not return the list within 5 seconds.
    pub async fn engine(&self) -> Result<Option<Engine>, ModelError> {
        if let Constrain::For(engine) = self.1.constrain {
            return Ok(Some(engine));
        }
        let detect = self.1.server.engine.get_or_try_init(|| self.detect());
        let detected = detect.await.copied();
        detected.map_err(|error| self.0.redact(error))
    }

    /// Requests the list of models, which names the engine.
    async fn detect(&self) -> Result<Option<Engine>, ModelError> {
        let client = &*self.0;
        let asked = Asked {
            path: paths::after_base(paths::MODELS),
            ..client.asked()
        };
        let mut answer = client
            .get(paths::MODELS, Waits::all(LIST_TIME), &asked)
            .await?;
        let body = answer.body(Vec::new(), LIST_BYTES).await;
        let body = body.map_err(|error| failed(&error, &asked))?;
        let list: ModelList<'_> =
            plaincall_wire::read(&body).map_err(|error| asked.cannot_be_read(&error))?;
        let models = list.data.unwrap_or_default();
        let owners = models.iter().map(Model::id_and_owner);
        Ok(constrained::engine_of(owners, &client.model))
    }

    /// The setting for requests with a grammar: without one if other fields constrain the reply.
    pub(super) fn constraint(&self) -> Constrain {
        let is_set = |name: &&str| {
            let field = self.0.field(name);
            field.is_some_and(|field| !field.is_null())
        };
        if constrained::REQUEST_FIELDS.iter().any(is_set) {
            return Constrain::Never;
        }
        self.1.constrain
    }

    /// The fields with which a reply is constrained, if it is.
    async fn fields(&self, grammar: &Arc<Grammar>) -> Result<Option<Arc<Fields>>, ModelError> {
        let support = &self.1.server;
        let engine = match self.constraint() {
            Constrain::For(engine) => Some(engine),
            Constrain::Always => Some(self.engine().await?.ok_or_else(|| unknown(&self.0))?),
            Constrain::Auto if !support.rejected.contains(&self.0.model) => {
                match self.engine().await {
                    Ok(engine) => engine,
                    Err(error) => {
                        use ModelErrorKind::{Busy, Connect, NotRunning};
                        if !matches!(error.kind, Busy | Connect | NotRunning) {
                            support.rejected.add(&self.0.model);
                        }
                        None
                    }
                }
            }
            Constrain::Auto | Constrain::Never => None,
        };
        let Some(engine) = engine else {
            return Ok(None);
        };
        Ok(Some(support.fields(engine, grammar).await))
    }

    /// Sends a request, and reads the beginning of the response. If the server rejects a grammar, the request is sent again
    /// without it, unless it is demanded.
    pub(super) async fn send(
        &self,
        request: ModelRequest,
        asked: &Asked<'_>,
    ) -> Result<Answered, ModelError> {
        let grammar = request.grammar.as_ref();
        let grammar = grammar.filter(|_| request.native.is_none());
        let fields = match grammar {
            Some(grammar) => self.fields(grammar).await?,
            None => None,
        };
        let answer = self.0.post(self.body(&request, fields.as_deref()), asked);
        let mut answer = answer.await?;
        if fields.is_some()
            && self.1.constrain == Constrain::Auto
            && constrained::REJECTIONS.contains(&answer.status())
        {
            answer = self.0.post(self.body(&request, None), asked).await?;
            // The other request was the same but for the grammar.
            if answer.is_success() {
                self.1.server.rejected.add(&self.0.model);
            }
        }
        drop(request);
        Answered::open(answer, asked).await
    }
}

fn unknown(client: &Client) -> ModelError {
    let message = format!(
        "replies cannot be constrained: the list of models of {} names no engine that accepts a grammar; set `constrain` to the engine, such as `llama.cpp` or `vllm`, or to `auto`",
        client.asked().server()
    );
    ModelError::new(ModelErrorKind::Refused, message)
}

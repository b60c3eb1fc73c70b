//! The engines of a model server that can constrain a reply.

use std::time::Duration;

use plaincall_grammar::Engine;
use plaincall_http::Rejections;
use plaincall_wire::openai::constrained;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::GatewayError;

/// How long a list of models without an engine counts: the server may be starting.
const UNKNOWN: Duration = Duration::from_secs(30);

/// The engines of a model server, and whether it rejected a grammar.
#[derive(Debug, Default)]
pub(in crate::server) struct GrammarSupport {
    /// The lock is held while the list of models is requested, so that other requests wait for the same answer.
    pub(in crate::server) detected: Mutex<Option<DetectedEngines>>,
    /// The models whose grammars it rejected.
    pub(in crate::server) rejected: Rejections,
}

/// The list of models, which names the engines.
#[derive(Debug)]
pub(in crate::server) struct DetectedEngines {
    pub(in crate::server) at: Instant,
    /// The id and the owner of each model.
    pub(in crate::server) models: Result<Vec<(String, String)>, GatewayError>,
}

impl DetectedEngines {
    pub(in crate::server) fn is_current(&self) -> bool {
        self.at.elapsed() < UNKNOWN || matches!(self.engine(""), Ok(Some(_)))
    }

    /// Returns the engine of a model; of no model, the first engine.
    pub(in crate::server) fn engine(&self, model: &str) -> Result<Option<Engine>, GatewayError> {
        let models = self.models.as_ref().map_err(Clone::clone)?;
        let owners = models.iter().map(|(id, owner)| (&**id, &**owner));
        Ok(constrained::engine_of(owners, model))
    }
}

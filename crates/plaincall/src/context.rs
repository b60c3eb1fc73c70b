//! What a tool is told beside its arguments.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::gate::Request;
use crate::result::{Status, status_name};
use crate::rules::{Rules, Verdict};
use crate::run_directory::RunDirectory;
use crate::whole_results::WholeResults;

/// What a tool is told about its call.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) call: u32,
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) dependencies: Vec<DependencyResult>,
    pub(crate) grace: Duration,
    pub(crate) surroundings: Arc<Surroundings>,
}

/// What all calls of a run share.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) directory: Option<RunDirectory>,
    /// What commands may see of the environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The whole outputs of calls, of which the model may have been told only the beginning.
    pub(crate) whole_results: WholeResults,
    pub(crate) rules: Rules,
}

/// The result of a call that this call depends on. It ended `ok`, or its tool lets dependents run although it failed
/// ([`Tool::dependents`](crate::Tool::dependents)); otherwise this call would not run.
#[derive(Clone, Debug, Serialize)]
pub struct DependencyResult {
    /// The id by which it is named.
    pub id: Arc<str>,
    /// The name of its tool.
    pub name: Arc<str>,
    /// How it ended.
    #[serde(with = "status_name")]
    pub status: Status,
    /// What it returned; empty if it returned nothing.
    pub output: Arc<str>,
    /// What went wrong, if it did not end `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

impl Context {
    /// The call's place in order of appearance, from 0, unique over the conversation.
    pub fn call(&self) -> u32 {
        self.call
    }

    /// The call's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the tool, as it was called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Is set when the call is to stop: it has run out of time, or the run was cancelled.
    ///
    /// The tool's own future is dropped then (after its [grace](crate::Tool::grace)); the token is for what it has
    /// started elsewhere, such as threads and tasks of its own.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// The results of the calls that this call depends on, in the order in which it names them.
    pub fn dependencies(&self) -> &[DependencyResult] {
        &self.dependencies
    }

    /// The result of the dependency with this id.
    pub fn dependency(&self, id: &str) -> Option<&DependencyResult> {
        self.dependencies.iter().find(|result| &*result.id == id)
    }

    /// What the rules of the run say about a call, for a tool that comes across more than it was called with. `None` if no
    /// rule says anything.
    pub fn verdict(&self, request: &Request) -> Option<Verdict> {
        self.surroundings.rules.verdict(request)
    }

    /// The run's own directory, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        self.surroundings.directory.as_ref().map(RunDirectory::path)
    }
}

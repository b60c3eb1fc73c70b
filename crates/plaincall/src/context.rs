//! The context of a call.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plaincall_reply::{Untrusted, untrusted::EchoGuard};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::request::Request;
use crate::result::Status;
use crate::rules::{Rules, Verdict};
use crate::run_directory::{Directories, RunDirectory};
use crate::whole_results::WholeResults;

/// The context of a call: its id, dependencies, cancellation and run.
#[derive(Clone, Debug)]
pub struct Context {
    pub(crate) call: u32,
    pub(crate) id: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) cancellation: CancellationToken,
    pub(crate) dependencies: Vec<DependencyResult>,
    pub(crate) grace: Duration,
    pub(crate) shared: Arc<RunContext>,
    pub(crate) observed: Arc<Mutex<Observed>>,
    pub(crate) idempotency_key: Option<Arc<str>>,
}

/// The untrusted text that a tool read in another form than its output shows, and that a call could be copied from.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    text: String,
    is_over: bool,
    /// A note for the model, beside the output.
    pub(crate) note: Option<&'static str>,
}

/// The limit of this text, in bytes. The output of a tool is shorter.
const OBSERVED: usize = 1 << 20;

impl Observed {
    pub(crate) fn take(this: &Mutex<Self>) -> (Option<String>, Option<&'static str>) {
        let mut this = this.lock().unwrap_or_else(PoisonError::into_inner);
        let text = std::mem::take(&mut this.text);
        ((!text.is_empty()).then_some(text), this.note.take())
    }

    pub(crate) fn set_note(this: &Mutex<Self>, note: &'static str) {
        this.lock().unwrap_or_else(PoisonError::into_inner).note = Some(note);
    }
}

/// The part of the context that all calls of a run share.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) directory: Option<RunDirectory>,
    pub(crate) current_directory: PathBuf,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) whole_results: Arc<WholeResults>,
    pub(crate) rules: Rules,
    /// Finds the relevant part of an untrusted text; `None` if the run allows echoes.
    pub(crate) guard: Option<EchoGuard>,
}

impl RunContext {
    pub(crate) fn directories(&self) -> Directories {
        Directories {
            current: self.current_directory.clone(),
            run: self.directory.as_ref().map(|own| own.path().to_owned()),
        }
    }
}

/// The result of a dependency, `ok` unless its tool [lets dependents run](crate::Tool::dependents) after a failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DependencyResult {
    /// The id of the call.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The end status.
    pub status: Status,
    /// The output; may be empty.
    pub output: Arc<str>,
    /// The error, if it did not end `ok`.
    pub error: Option<Arc<str>>,
}

impl DependencyResult {
    pub(crate) fn bytes(&self) -> usize {
        self.output.len() + self.error.as_ref().map_or(0, |error| error.len())
    }
}

impl Context {
    /// Returns the call's index in order of appearance, from 0, unique in the run.
    pub fn call(&self) -> u32 {
        self.call
    }

    /// Returns the id of the call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a token that is cancelled when the call times out or the run is cancelled.
    ///
    /// The tool's own future is dropped then, after its [grace period](crate::Tool::grace). Use the token to stop threads and
    /// tasks that the tool started.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Returns the results of the call's dependencies, in the order in which the call lists them.
    pub fn dependencies(&self) -> &[DependencyResult] {
        &self.dependencies
    }

    /// Returns a key that is the same each time this call is started, also after a crash, and different for every other call.
    /// An idempotent tool passes it to a service that ignores repeated requests. `None` in a [`Run`](crate::Run); a
    /// [durable run](crate::durable) has one.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_deref()
    }

    /// Returns whether the run has rules. Otherwise [`verdict`](Self::verdict) is always `None`.
    pub fn has_rules(&self) -> bool {
        !self.shared.rules.is_empty()
    }

    /// Evaluates the rules of the run on another request. Returns `None` if no rule matches.
    pub fn verdict(&self, request: &Request) -> Option<Verdict> {
        self.shared.rules.verdict(request)
    }

    /// Records untrusted text as the tool read it, if the output shows it in another form: with line numbers, escaped, or in
    /// parts. A call that the model copies from it is held, as if copied from the output (`spec/running.md`, "Echoes").
    /// Several texts of a call are joined as lines. Only parts that contain a call are kept, at most 1 MiB.
    pub fn observe_untrusted(&self, text: &str) {
        let guard = self.shared.guard.as_ref();
        let counting =
            guard.and_then(|guard| Some(guard.relevant_part(&Untrusted::new(text))?.len()));
        let Some(text) = counting.and_then(|length| text.get(text.len() - length..)) else {
            return;
        };
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        observed.is_over |= observed.text.len() + text.len() > OBSERVED;
        if !observed.is_over {
            observed.text.push_str(text);
            observed.text.push('\n');
        }
    }

    /// Returns the run's scratch directory, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        self.shared.directory.as_ref().map(RunDirectory::path)
    }
}

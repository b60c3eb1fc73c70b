//! What a tool is told beside its arguments.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plaincall_call::{Untrusted, untrusted::EchoGuard};
use tokio_util::sync::CancellationToken;

use crate::request::Request;
use crate::result::Status;
use crate::rules::{Rules, Verdict};
use crate::run_directory::{Directories, RunDirectory};
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
    pub(crate) shared: Arc<RunContext>,
    pub(crate) observed: Arc<Mutex<Observed>>,
}

/// The untrusted text that a tool has observed beside its output: what a call could have been copied from.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    text: String,
    is_over: bool,
}

/// How much of it is kept, in bytes. A tool shows less at a time.
const OBSERVED: usize = 1 << 20;

impl Observed {
    pub(crate) fn take(this: &Mutex<Self>) -> Option<String> {
        let text = std::mem::take(&mut this.lock().unwrap_or_else(PoisonError::into_inner).text);
        (!text.is_empty()).then_some(text)
    }
}

/// What all calls of a run share.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) directory: Option<RunDirectory>,
    pub(crate) current_directory: PathBuf,
    /// What commands may see of the environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The whole outputs of calls, of which the model may have been told only the beginning.
    pub(crate) whole_results: WholeResults,
    pub(crate) rules: Rules,
    /// Finds what counts of an untrusted text; `None` if echoes are nothing special in this run.
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

/// The result of a call that this call depends on. It ended `ok`, or its tool lets dependents run although it failed
/// ([`Tool::dependents`](crate::Tool::dependents)); otherwise this call would not run.
#[derive(Clone, Debug)]
pub struct DependencyResult {
    /// The id by which it is named.
    pub id: Arc<str>,
    /// The name of its tool.
    pub name: Arc<str>,
    /// How it ended.
    pub status: Status,
    /// What it returned; empty if it returned nothing.
    pub output: Arc<str>,
    /// What went wrong, if it did not end `ok`.
    pub error: Option<Arc<str>>,
}

impl DependencyResult {
    pub(crate) fn bytes(&self) -> usize {
        self.output.len() + self.error.as_ref().map_or(0, |error| error.len())
    }
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

    /// Whether the run has rules, so that [`verdict`](Self::verdict) can say anything.
    pub fn has_rules(&self) -> bool {
        !self.shared.rules.is_empty()
    }

    /// What the rules of the run say about a call, for a tool that comes across more than it was called with. `None` if no
    /// rule says anything.
    pub fn verdict(&self, request: &Request) -> Option<Verdict> {
        self.shared.rules.verdict(request)
    }

    /// Records an untrusted text as the tool has read it, where the output shows it in another form: with numbers in front
    /// of its lines, escaped, or in parts. A call that a model copies from it is held, like one that it copies from the
    /// output (`spec/running.md`, "Echoes"). Several texts of a call count as the lines of one.
    ///
    /// Only what a call could be copied from is kept, at most 1 MiB. Beyond that, the output alone counts.
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

    /// The run's scratch directory, if it has one.
    pub fn directory(&self) -> Option<&Path> {
        self.shared.directory.as_ref().map(RunDirectory::path)
    }
}

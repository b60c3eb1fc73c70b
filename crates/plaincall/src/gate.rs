//! Decisions about whether a call may run.

use std::pin::Pin;
use std::sync::Arc;

use plaincall_tool::{Arguments, Effect};

use crate::request::Request;
use crate::tool_error::BoxError;

/// Decides whether a call may run: a policy, or a person.
///
/// The gate is asked about a call that is ready, before the call takes a slot. It may take its time: only the calls that
/// depend on this one wait (`spec/running.md`, "The life of a call"). If the gate returns an error or panics, the call is
/// denied. If the run is cancelled, the future is dropped.
///
/// An async closure is a gate:
///
/// ```
/// use plaincall::{Decision, Request, Run, RunBuilder};
///
/// fn only_in_src(run: RunBuilder) -> RunBuilder {
///     run.gate(|request: Request| async move {
///         // The arguments as one JSON object, for a person.
///         println!("{} {}", request.name, request.arguments.to_value());
///         Ok(match request.arguments.get("path") {
///             Some(path) if path.starts_with("src/") => Decision::Allow,
///             _ => Decision::deny("only paths below src/ are allowed"),
///         })
///     })
/// }
/// ```
pub trait Gate: Send + Sync {
    /// Decides about one call.
    ///
    /// # Errors
    /// Returns an error if it cannot decide. The call is then denied, and the model reads the error.
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a>;

    /// Reports the outcome of a call that may change something and was interrupted by a crash. Default:
    /// [`Recovery::Unknown`], because only a person can find out.
    ///
    /// # Errors
    /// Returns an error if it cannot answer. The outcome is then unknown.
    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        let _ = request;
        Box::pin(async { Ok(Recovery::Unknown) })
    }
}

impl<F, R> Gate for F
where
    F: Fn(Request) -> R + Send + Sync,
    R: Future<Output = Result<Decision, BoxError>> + Send + 'static,
{
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(self(request.clone()))
    }
}

impl<G: Gate + ?Sized> Gate for Arc<G> {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        (**self).decide(request)
    }

    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        (**self).recover(request)
    }
}

/// The future that [`Gate::decide`] returns.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = Result<Decision, BoxError>> + Send + 'a>>;

/// The future that [`Gate::recover`] returns.
pub type RecoveryFuture<'a> = Pin<Box<dyn Future<Output = Result<Recovery, BoxError>> + Send + 'a>>;

/// The decision of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call may run.
    Allow,
    /// The call may run, and the log has the reason.
    AllowBecause {
        /// The reason, for a person who reads the log.
        reason: String,
    },
    /// This call and all later calls of the same tool may run, without asking again.
    Always,
    /// The call may run with other arguments. They are validated like written ones, and the model is informed.
    Edit {
        /// The new arguments.
        arguments: Arguments,
    },
    /// The call may not run.
    Deny {
        /// The reason, for the model.
        reason: String,
    },
}

/// The outcome of a call that was interrupted by a crash, as a person reports it (`spec/running.md`, "After a crash").
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recovery {
    /// The outcome is unknown. The call ends as `unknown`, and the gate is asked again when the run is resumed again.
    Unknown,
    /// Run the call again.
    RunAgain,
    /// The call completed.
    Done {
        /// Its output, as far as it is known.
        output: String,
    },
    /// The call did not complete, and should not run again.
    NotDone {
        /// The reason, for the model.
        reason: String,
    },
}

impl Decision {
    /// Allows the call, with a reason for the log.
    pub fn allow(reason: impl Into<String>) -> Self {
        Self::AllowBecause {
            reason: reason.into(),
        }
    }

    /// Denies the call, with a reason for the model.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny {
            reason: reason.into(),
        }
    }
}

/// The default gate: allows tools that read, tools that are idempotent and tools that
/// [delegate](Request::delegates), and denies other tools that write and [held calls](Request::held).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOnly;

impl ReadOnly {
    /// Decides about a call without asking anyone.
    pub(crate) fn decision(request: &Request) -> Decision {
        if let Some(held) = &request.held {
            return Decision::deny(held.rejection());
        }
        if request.delegates {
            return Decision::allow("the calls that it submits need approval themselves");
        }
        match request.effect {
            Effect::Read => Decision::allow("tools that only read need no approval"),
            Effect::Idempotent => Decision::allow("idempotent tools need no approval"),
            Effect::Write => Decision::deny(format!(
                "the tool `{}` may change something, and this run does not allow changes",
                request.name
            )),
        }
    }
}

impl Gate for ReadOnly {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move { Ok(Self::decision(request)) })
    }
}

/// Allows every call except [held calls](Request::held), which need the approval of that very call.
/// [`Policy::echoes`](crate::Policy::echoes) can allow echoes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            Ok(match &request.held {
                None => Decision::allow("every call is allowed"),
                Some(held) => Decision::deny(held.rejection()),
            })
        })
    }
}

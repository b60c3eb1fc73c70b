//! Who decides whether a call may run.

use std::pin::Pin;
use std::sync::Arc;

use plaincall_call::{Arguments, Effect};

use crate::request::Request;
use crate::tool_error::BoxError;

/// Decides whether a call that is ready may run: a policy, or a person.
///
/// It is asked when nothing else stands in the call's way, and before the call takes a slot; so a gate may take its
/// time, and only the calls that depend on this one wait (`spec/running.md`, "The life of a call"). A gate that
/// returns an error or panics has denied the call. When the run is cancelled, the future is dropped.
///
/// ```
/// use plaincall::{Decision, Gate, Request, gate::GateFuture};
///
/// struct OnlyIn(&'static str);
///
/// impl Gate for OnlyIn {
///     fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
///         Box::pin(async move {
///             // What a person reads: the arguments as one JSON object.
///             println!("{} {}", request.name, request.arguments.to_value());
///             Ok(match request.arguments.get("path") {
///                 Some(path) if path.starts_with(self.0) => Decision::Allow,
///                 _ => Decision::deny(format!("only paths below {} are allowed", self.0)),
///             })
///         })
///     }
/// }
/// ```
pub trait Gate: Send + Sync {
    /// Decides about one call.
    ///
    /// # Errors
    /// Whatever keeps it from deciding. The call is denied, and the model hears of the error.
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a>;

    /// Says what became of a call of a tool that may change something, which was started before a crash. If nothing else
    /// is said nobody knows: no policy can, only a person who looks.
    ///
    /// # Errors
    /// Whatever keeps it from saying. Then nobody knows.
    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        let _ = request;
        Box::pin(async { Ok(Recovery::Unknown) })
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

/// What [`Gate::decide`] returns.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = Result<Decision, BoxError>> + Send + 'a>>;

/// What [`Gate::recover`] returns.
pub type RecoveryFuture<'a> = Pin<Box<dyn Future<Output = Result<Recovery, BoxError>> + Send + 'a>>;

/// What a gate decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call may run.
    Allow,
    /// This call and all later calls of the same tool may run; nobody is asked about them any more.
    Always,
    /// The call may run with other arguments. They are checked as written ones are, and the model is told.
    Edit {
        /// What it is to be called with.
        arguments: Arguments,
    },
    /// The call may not run.
    Deny {
        /// Why, in words for the model.
        reason: String,
    },
}

/// What somebody says about a call that was started before a crash, and of which nobody knows what became
/// (`spec/running.md`, "After a crash").
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody knows. The call is `unknown`, and whoever takes the run up again is asked again.
    Unknown,
    /// It is to be started once more.
    RunAgain,
    /// It was done.
    Done {
        /// What it returned, as far as somebody knows.
        output: String,
    },
    /// It was not done, and is not to be.
    NotDone {
        /// Why, in words for the model.
        reason: String,
    },
}

impl Decision {
    /// Denies with a reason that the model reads.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny {
            reason: reason.into(),
        }
    }
}

/// The gate of a run that has no other: tools that only read and tools that can be repeated may run, tools that
/// write may not. Nor may [held calls](Request::held).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOnly;

impl ReadOnly {
    /// What it decides about a tool.
    pub(crate) fn decision(request: &Request) -> Decision {
        if let Some(held) = &request.held {
            return Decision::deny(held.refusal());
        }
        match request.effect {
            Effect::Read | Effect::Idempotent => Decision::Allow,
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

/// Lets every call run but [held calls](Request::held): a yes that was given beforehand was not given for them.
/// [`Policy::echoes`](crate::Policy::echoes) can let echoes run like all others.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Gate for AllowAll {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            Ok(match &request.held {
                None => Decision::Allow,
                Some(held) => Decision::deny(held.refusal()),
            })
        })
    }
}

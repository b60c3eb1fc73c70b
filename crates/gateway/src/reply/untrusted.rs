//! The texts of a request from which the model may copy calls (`spec/gateway.md` 5).

use std::sync::{Mutex, PoisonError};

use plaincall_reply::{Untrusted, untrusted::EchoGuard};
use plaincall_tool::{Arguments, Limits, ToolLookup, bind_arguments, flatten_call};
use serde_json::{Map, Value};

/// A part of the conversation before the reply.
#[derive(Debug)]
pub(crate) enum EarlierText {
    /// A text that the model did not write.
    Untrusted(String),
    /// A call of the model.
    Call {
        name: String,
        /// JSON, as the client sends it.
        arguments: String,
    },
}

impl EarlierText {
    pub(crate) fn untrusted(&self) -> Option<&str> {
        match self {
            Self::Untrusted(text) => Some(text),
            Self::Call { .. } => None,
        }
    }
}

/// The conversation before the reply, without the text of the model and of system messages.
#[derive(Debug, Default)]
pub(crate) struct UntrustedTexts {
    texts: Vec<EarlierText>,
    /// Created for the first call that may be a copy, because most replies need none.
    guard: Mutex<Option<EchoGuard>>,
}

impl UntrustedTexts {
    pub(crate) fn new(texts: Vec<EarlierText>) -> Self {
        Self {
            texts,
            guard: Mutex::default(),
        }
    }

    #[cfg(feature = "server")]
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Starts the next reply of the model.
    pub(crate) fn begin_reply(&self) {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(guard) = &mut *guard {
            guard.begin_reply();
        }
    }

    /// Uses the guard, which is created from an empty one.
    pub(crate) fn with_guard<T>(
        &self,
        empty: &EchoGuard,
        tools: &impl ToolLookup,
        use_guard: impl FnOnce(&mut EchoGuard) -> T,
    ) -> T {
        let mut guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        use_guard(guard.get_or_insert_with(|| self.observed(empty.clone(), tools)))
    }

    fn observed(&self, mut guard: EchoGuard, tools: &impl ToolLookup) -> EchoGuard {
        for text in &self.texts {
            match text {
                EarlierText::Untrusted(text) => guard.observe(&Untrusted::new(text)),
                EarlierText::Call { name, arguments } => {
                    if let Some((name, arguments)) = bound(name, arguments, tools) {
                        guard.record_call(name, &arguments);
                    }
                }
            }
        }
        guard
    }
}

/// Returns the model's name of a tool and the arguments of a call, if it is valid.
fn bound<'t>(
    name: &str,
    arguments: &str,
    tools: &'t impl ToolLookup,
) -> Option<(&'t str, Arguments)> {
    let (_, tool) = tools.find(name)?;
    let object: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let pairs = flatten_call(&object, tool).ok()?;
    let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
    let arguments = Arguments::from_pairs_within(&Limits::for_running(), tool, pairs).ok()?;
    Some((&tool.name, bind_arguments(tool, &arguments).ok()?))
}

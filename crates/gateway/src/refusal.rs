//! Why a request is not answered.

use plaincall_syntax::DialectError;
use plaincall_wire::ReadError;
use plaincall_wire::openai::ErrorObject;

/// The types of the gateway's own errors, less the one that stands for all others.
#[cfg(feature = "server")]
const KINDS: [&str; 7] = [
    "authentication_error",
    "gateway_error",
    "invalid_request_error",
    "model_error",
    "overloaded_error",
    "permission_error",
    "timeout_error",
];
/// Why a request is not answered: the status of the answer and the object in its body, or in the last event of a
/// stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What is said about it.
    pub error: Box<ErrorObject<'static>>,
    /// Headers of the answer, such as when to try again.
    pub headers: Vec<(String, String)>,
    /// What may stand in a log, if that is not the message.
    log: Option<String>,
    /// Whether the same request would only be refused again, or costs as much again as it has.
    is_final: bool,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, error: ErrorObject<'static>) -> Self {
        Self {
            status,
            error: Box::new(error),
            headers: Vec::new(),
            log: None,
            is_final: false,
        }
    }

    /// Says something else in a log.
    pub(crate) fn log(mut self, words: impl Into<String>) -> Self {
        self.log = Some(words.into());
        self
    }

    /// Says that nobody shall send the request again by itself.
    pub(crate) fn for_good(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Whether clients should not send the request again: it was repaired in vain, or only the operator can help.
    #[cfg(feature = "server")]
    pub(crate) fn is_final(&self) -> bool {
        self.is_final
    }

    /// The model's server has sent what cannot be read: 502.
    pub(crate) fn unreadable(error: &ReadError) -> Self {
        let words = "the model's server has sent what cannot be read";
        let at = match error.path.as_str() {
            "" => String::new(),
            path => format!(" at {path}"),
        };
        Self::upstream(format!("{words}: {error}")).log(format!("{words}{at}"))
    }

    /// Something is wrong with the request: 400.
    pub fn request(message: impl Into<String>, param: Option<&str>) -> Self {
        let error = ErrorObject::new("invalid_request_error", message.into());
        let error = match param {
            Some(param) => error.param(param),
            None => error,
        };
        Self::new(400, error)
    }

    /// The same with another status.
    #[cfg(feature = "server")]
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The settings of the model cannot work: 500.
    pub(crate) fn settings(error: &DialectError) -> Self {
        let message = format!("the settings of this model cannot work: {error}");
        Self::new(500, ErrorObject::new("gateway_error", message)).for_good()
    }

    /// The model did not write what was asked for, however often: 502.
    pub fn model(message: impl Into<String>, code: &str) -> Self {
        let error = ErrorObject::new("model_error", message.into());
        Self::new(502, error.code(code)).for_good()
    }

    /// The model's server failed: 502.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(502, ErrorObject::new("upstream_error", message.into()))
    }

    /// The gateway ends before the answer is complete: 503.
    #[cfg(feature = "server")]
    pub(crate) fn shutting_down() -> Self {
        let message = "the gateway is being shut down: send the request again";
        Self::new(
            503,
            ErrorObject::new("gateway_error", message).code("shutting_down"),
        )
    }

    #[cfg(feature = "server")]
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.error
            .code
            .as_ref()
            .is_some_and(|code| code.text() == "\"shutting_down\"")
    }

    /// What the model's server says about what went wrong there. Clients want a type, if it names none.
    pub fn of_upstream(status: u16, mut error: ErrorObject<'static>) -> Self {
        error.kind.get_or_insert_with(|| "upstream_error".into());
        if error.message.as_deref().is_none_or(str::is_empty) {
            error.message = Some("the model's server has failed, and does not say why".into());
        }
        let refusal = Self::new(status, error);
        // Its own words may quote what was said.
        refusal.log(format!(
            "the model's server has answered with an error, status {status}"
        ))
    }

    /// Its type, if that is one of the gateway's own. The types of the model's server are all one: they could be anything.
    #[cfg(feature = "server")]
    pub(crate) fn kind(&self) -> &'static str {
        let kind = self.error.kind.as_deref();
        let own = KINDS.into_iter().find(|own| Some(*own) == kind);
        own.unwrap_or("upstream_error")
    }

    /// What may stand in a log: nothing that quotes the request.
    #[cfg(feature = "server")]
    pub(crate) fn for_log(&self) -> String {
        if let Some(log) = &self.log {
            return log.clone();
        }
        if self.error.kind.as_deref() != Some("invalid_request_error") {
            return self.message().to_owned();
        }
        match self.error.param.as_ref().filter(|param| !param.is_null()) {
            Some(param) => format!("the request is wrong at {}", param.text()),
            None => "the request is wrong".to_owned(),
        }
    }

    /// What it says.
    pub fn message(&self) -> &str {
        self.error.message.as_deref().unwrap_or_default()
    }
}

//! The errors that clients receive.

use plaincall_syntax::DialectError;
use plaincall_wire::ReadError;
use plaincall_wire::openai::ErrorObject;

/// The error types of the gateway itself. All others are reported as `upstream_error`.
#[cfg(feature = "server")]
const ERROR_TYPES: [&str; 8] = [
    "authentication_error",
    "gateway_error",
    "invalid_request_error",
    "model_error",
    "overloaded_error",
    "permission_error",
    "rate_limit_error",
    "timeout_error",
];

/// An error response: its status, and the object in its body or in the last event of a stream.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[error("{}", self.message())]
pub struct GatewayError {
    /// The HTTP status.
    pub status: u16,
    /// The error object that the client receives.
    pub body: Box<ErrorObject<'static>>,
    /// Response headers, such as `retry-after`.
    pub headers: Vec<(String, String)>,
    /// The message for the log, if the log must not quote the message for the client.
    log: Option<String>,
    /// Whether a retry cannot help, or would cost as much again.
    is_final: bool,
}

impl GatewayError {
    /// Creates an error with this status.
    pub fn new(status: u16, body: ErrorObject<'static>) -> Self {
        Self {
            status,
            body: Box::new(body),
            headers: Vec::new(),
            log: None,
            is_final: false,
        }
    }

    /// Sets the message for the log.
    pub(crate) fn log(mut self, message: impl Into<String>) -> Self {
        self.log = Some(message.into());
        self
    }

    /// Asks clients not to retry automatically.
    pub(crate) fn without_retry(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Returns whether clients should not retry, because it cannot help or would cost as much again.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// The model server's answer cannot be parsed: 502.
    pub(crate) fn unreadable(error: &ReadError) -> Self {
        let message = "the model server's answer cannot be parsed";
        let at = match error.path.as_str() {
            "" => String::new(),
            path => format!(" at {path}"),
        };
        Self::upstream(format!("{message}: {error}")).log(format!("{message}{at}"))
    }

    /// The body of the request cannot be parsed: 400.
    pub(crate) fn unreadable_request(error: &ReadError) -> Self {
        let message = format!("the request body cannot be parsed: {error}");
        Self::invalid_request(message, Some(&*error.path).filter(|path| !path.is_empty()))
    }

    /// The request is invalid: 400.
    pub fn invalid_request(message: impl Into<String>, param: Option<&str>) -> Self {
        let error = ErrorObject::new("invalid_request_error", message.into());
        let error = match param {
            Some(param) => error.param(param),
            None => error,
        };
        Self::new(400, error)
    }

    /// Changes the status.
    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets the time after which the client can try again.
    #[cfg(feature = "server")]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        let header = ("retry-after".to_owned(), seconds.to_string());
        self.headers.push(header);
        self
    }

    /// The settings of the model are invalid: 500.
    pub(crate) fn settings(error: &DialectError) -> Self {
        let message = format!("invalid settings for this model: {error}");
        Self::new(500, ErrorObject::new("gateway_error", message)).without_retry()
    }

    /// The model did not write what was required, even after all repair rounds: 502.
    pub fn model(message: impl Into<String>, code: &str) -> Self {
        let error = ErrorObject::new("model_error", message.into());
        Self::new(502, error.code(code)).without_retry()
    }

    /// The model server failed: 502.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(502, ErrorObject::new("upstream_error", message.into()))
    }

    /// The gateway ends before the answer is complete: 503.
    #[cfg(feature = "server")]
    pub(crate) fn shutting_down() -> Self {
        let message = "the gateway is shutting down: send the request again";
        Self::new(
            503,
            ErrorObject::new("gateway_error", message).code("shutting_down"),
        )
    }

    #[cfg(feature = "server")]
    pub(crate) fn is_shutting_down(&self) -> bool {
        let code = self.body.code.as_ref();
        code.is_some_and(|code| code.text() == "\"shutting_down\"")
    }

    /// Forwards an error in an answer of the model server that began with success. Its status is the one that it names.
    pub(crate) fn from_answer(error: ErrorObject<'static>) -> Self {
        // Only the operator can fix a wrong key of the gateway.
        let status = error.status().filter(|status| !matches!(status, 401 | 403));
        Self::from_upstream(status.unwrap_or(502), error)
    }

    /// Forwards an error of the model server. Clients require a type, so a missing one is added.
    pub fn from_upstream(status: u16, mut error: ErrorObject<'static>) -> Self {
        error.kind.get_or_insert_with(|| "upstream_error".into());
        if error.message.as_deref().is_none_or(str::is_empty) {
            error.message = Some("the model server failed without an error message".into());
        }
        // Its message may quote the conversation.
        Self::new(status, error).log(format!(
            "the model server answered with an error, status {status}"
        ))
    }

    /// Returns its type if it is one of the gateway's own, else `upstream_error`: other types could be any text.
    #[cfg(feature = "server")]
    pub(crate) fn kind(&self) -> &'static str {
        let kind = self.body.kind.as_deref();
        let own = ERROR_TYPES.into_iter().find(|own| Some(*own) == kind);
        own.unwrap_or("upstream_error")
    }

    /// Returns the message for the log, which quotes nothing of the request.
    #[cfg(feature = "server")]
    pub(crate) fn log_message(&self) -> String {
        if let Some(log) = &self.log {
            return log.clone();
        }
        if self.body.kind.as_deref() != Some("invalid_request_error") {
            return self.message().to_owned();
        }
        match self.body.param.as_ref().filter(|param| !param.is_null()) {
            Some(param) => format!("invalid request at {}", param.text()),
            None => "invalid request".to_owned(),
        }
    }

    /// Returns the message for the client.
    pub fn message(&self) -> &str {
        self.body.message.as_deref().unwrap_or_default()
    }
}

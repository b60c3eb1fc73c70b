//! Errors of servers.

use std::borrow::Cow;

use crate::json::Json;

object! {
    /// The body of an error response, and the data of an event that ends a stream with an error.
    pub struct ErrorBody<'a> {
        /// The error.
        "error" error: Option<ErrorObject<'a>>,
    }

    /// An error.
    pub struct ErrorObject<'a> {
        /// The message for people.
        "message" message: Option<Cow<'a, str>>,
        /// The kind: `invalid_request_error`, `authentication_error`, `rate_limit_error`, `server_error` …
        "type" kind: Option<Cow<'a, str>>,
        /// The parameter of the request.
        "param" param: Option<Json<'a>>,
        /// The code for programs: a word, or a number from some servers.
        "code" code: Option<Json<'a>>,
    }

    /// The formats of errors.
    struct AnyForm<'a> {
        "error" error: Option<Json<'a>>,
        "message" message: Option<Json<'a>>,
        "detail" detail: Option<Json<'a>>,
        "type" kind: Option<Json<'a>>,
        "param" param: Option<Json<'a>>,
        "code" code: Option<Json<'a>>,
    }
}

impl<'a> ErrorBody<'a> {
    /// Creates the body for this error.
    pub fn new(error: ErrorObject<'a>) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl<'a> ErrorObject<'a> {
    /// Creates an error with a kind and a message. All four fields are written, since clients expect them.
    pub fn new(kind: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            message: Some(message.into()),
            kind: Some(kind.into()),
            param: Some(Json::default()),
            code: Some(Json::default()),
            ..Self::default()
        }
    }

    /// Sets the parameter of the request.
    pub fn param(mut self, name: &str) -> Self {
        self.param = Some(Json::new(&name));
        self
    }

    /// Sets the code.
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(Json::new(&code));
        self
    }
}

/// Reads an error from the body of a response or the data of an event, in any format.
///
/// Servers send `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, a list with one of these, or
/// plain text. The message is empty only if the body is; a body that is not JSON becomes the message.
pub fn read_error(body: &[u8]) -> ErrorObject<'static> {
    let text = String::from_utf8_lossy(body);
    let inner = Json::parse(text.trim_ascii())
        .ok()
        .and_then(|json| error_in(&json, 4));
    inner.unwrap_or_else(|| {
        let mut error = ErrorObject::new("upstream_error", text.trim_ascii());
        error.kind = None;
        error.into_owned()
    })
}

/// Returns the error in a value, which may be nested up to this depth.
fn error_in(json: &Json<'_>, wraps: u8) -> Option<ErrorObject<'static>> {
    let wraps = wraps.checked_sub(1)?;
    if let Ok(message) = json.read::<String>() {
        let mut error = ErrorObject::new("", message);
        error.kind = None;
        return Some(error.into_owned());
    }
    if let Ok(list) = json.read::<Vec<Json<'_>>>() {
        return list.first().and_then(|first| error_in(first, wraps));
    }
    let form = json.read::<AnyForm<'_>>().ok()?;
    let inner = form.error.as_ref();
    if let Some(inner) = inner.and_then(|error| error_in(error, wraps)) {
        return Some(inner);
    }
    let message = form.message.or(form.detail)?;
    let text = |json: Json<'_>| {
        json.read::<String>()
            .unwrap_or_else(|_| json.text().to_owned())
    };
    Some(ErrorObject {
        message: Some(text(message).into()),
        kind: form.kind.map(|kind| text(kind).into()),
        param: Some(form.param.unwrap_or_default().into_owned()),
        code: Some(form.code.unwrap_or_default().into_owned()),
        unknown: form.unknown.into_owned(),
    })
}

//! Errors, as servers tell them.

use std::borrow::Cow;

use crate::json::Json;

object! {
    /// The body of a response that is an error, and the data of an event that ends a stream with one.
    pub struct ErrorBody<'a> {
        /// The error.
        "error" error: Option<ErrorObject<'a>>,
    }

    /// What went wrong.
    pub struct ErrorObject<'a> {
        /// A sentence for people.
        "message" message: Option<Cow<'a, str>>,
        /// The kind: `invalid_request_error`, `authentication_error`, `rate_limit_error`, `server_error` …
        "type" kind: Option<Cow<'a, str>>,
        /// The field of the request.
        "param" param: Option<Json<'a>>,
        /// A code for programs: a word, from some servers a number.
        "code" code: Option<Json<'a>>,
    }

    /// The forms that errors have.
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
    /// The body that tells this error.
    pub fn new(error: ErrorObject<'a>) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl<'a> ErrorObject<'a> {
    /// An error with a kind and a sentence. All four fields are written: clients look for them.
    pub fn new(kind: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            message: Some(message.into()),
            kind: Some(kind.into()),
            param: Some(Json::default()),
            code: Some(Json::default()),
            ..Self::default()
        }
    }

    /// The same, about a field of the request.
    pub fn param(mut self, name: &str) -> Self {
        self.param = Some(Json::new(&name));
        self
    }

    /// The same, with a code.
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(Json::new(&code));
        self
    }
}

/// What went wrong by the body of a response, or by the data of an event, in whatever form the server tells it.
///
/// Servers write `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, a list with one of these, or
/// plain text. The message is never empty unless the body is; what is no JSON is the message itself.
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

/// The error in a value, which may be wrapped this often.
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

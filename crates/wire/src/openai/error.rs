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
        "error_message" error_message: Option<Json<'a>>,
        "msg" short_message: Option<Json<'a>>,
        "error_type" error_type: Option<Json<'a>>,
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

    /// Returns the HTTP status that the error names: a number in one of its fields, or else a word in its kind or code.
    pub fn status(&self) -> Option<u16> {
        let fields = ["status", "status_code", "http_status"];
        let fields = fields.into_iter().filter_map(|name| self.unknown.get(name));
        let mut numbers = self.code.iter().chain(fields).filter_map(|json| {
            let text = json.text().trim_matches('"');
            text.parse().ok()
        });
        let number = numbers.find(|status| (400..600).contains(status));
        let words = [self.kind.as_deref(), self.code.as_ref().map(Json::text)];
        number.or_else(|| words.into_iter().flatten().find_map(status_of))
    }
}

/// Returns the status for a word of servers.
fn status_of(word: &str) -> Option<u16> {
    let word = word.to_lowercase();
    let found = STATUSES.iter().find(|(known, _)| word.contains(known));
    found.map(|(_, status)| *status)
}

/// The statuses for words in kinds and codes, in lower case.
const STATUSES: [(&str, u16); 16] = [
    ("overloaded", 529),
    ("rate_limit", 429),
    ("ratelimit", 429),
    ("insufficient_quota", 429),
    ("request_too_large", 413),
    ("context_length", 400),
    ("context_size", 400),
    ("context_window", 400),
    ("authentication_error", 401),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("invalid_request", 400),
    ("badrequest", 400),
    ("bad_request", 400),
    ("api_error", 500),
    ("server_error", 500),
];

/// Reads an error from the body of a response or the data of an event, in any format.
///
/// Servers send `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, `{"error_type": …, "error_message": …}`,
/// `{"code": …, "msg": …}`, a list with one of these, or plain text. The message is empty only if the body is; a body that is not JSON becomes the message.
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
    let kind = form.error_type.or(form.kind);
    let message = [
        form.message,
        form.detail,
        form.error_message,
        form.short_message,
    ];
    let message = message.into_iter().flatten().next()?;
    let text = |json: Json<'_>| {
        json.read::<String>()
            .unwrap_or_else(|_| json.text().to_owned())
    };
    Some(ErrorObject {
        message: Some(text(message).into()),
        kind: kind.map(|kind| text(kind).into()),
        param: Some(form.param.unwrap_or_default().into_owned()),
        code: Some(form.code.unwrap_or_default().into_owned()),
        unknown: form.unknown.into_owned(),
    })
}

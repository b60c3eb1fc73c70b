//! Errors.

use std::borrow::Cow;

object! {
    /// The body of an error response, and the data of an event that ends a stream with an error.
    pub struct ErrorBody<'a> {
        /// `error`
        "type" kind: Option<Cow<'a, str>>,
        /// The error.
        "error" error: Option<ErrorObject<'a>>,
        /// The id of the request.
        "request_id" request_id: Option<Cow<'a, str>>,
    }

    /// An error.
    pub struct ErrorObject<'a> {
        /// The kind: `invalid_request_error`, `authentication_error`, `overloaded_error` …
        "type" kind: Option<Cow<'a, str>>,
        /// The message for people.
        "message" message: Option<Cow<'a, str>>,
    }
}

impl<'a> ErrorBody<'a> {
    /// Creates the body for an error of this kind.
    pub fn new(kind: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            kind: Some("error".into()),
            error: Some(ErrorObject {
                kind: Some(kind.into()),
                message: Some(message.into()),
                ..ErrorObject::default()
            }),
            ..Self::default()
        }
    }

    /// Sets the id of the request.
    pub fn request_id(mut self, id: impl Into<Cow<'a, str>>) -> Self {
        self.request_id = Some(id.into());
        self
    }
}

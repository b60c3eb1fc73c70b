//! What `GET /v1/models` answers.

use std::borrow::Cow;

use crate::json::Json;

object! {
    /// The models of a server.
    pub struct ModelList<'a> {
        /// `list`
        "object" object: Option<Cow<'a, str>>,
        /// The models; `null` from a server that has none.
        "data" data: Option<Vec<Model<'a>>>,
    }

    /// A model.
    pub struct Model<'a> {
        /// The name by which requests ask for it.
        "id" id: Option<Cow<'a, str>>,
        /// `model`
        "object" object: Option<Cow<'a, str>>,
        /// When, in seconds since 1970.
        "created" created: Option<Json<'a>>,
    }
}

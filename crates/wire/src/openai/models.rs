//! The response of `GET /v1/models`.

use std::borrow::Cow;

use crate::json::Json;

object! {
    /// A request of any kind that may name a model.
    pub struct ModelRequest<'a> {
        /// The requested model.
        "model" model: Option<Cow<'a, str>>,
    }

    /// The models of a server.
    pub struct ModelList<'a> {
        /// `list`
        "object" object: Option<Cow<'a, str>>,
        /// The models; `null` from servers without any.
        "data" data: Option<Vec<Model<'a>>>,
    }

    /// A model.
    pub struct Model<'a> {
        /// The name for requests.
        "id" id: Option<Cow<'a, str>>,
        /// `model`
        "object" object: Option<Cow<'a, str>>,
        /// The creation time, in seconds since 1970.
        "created" created: Option<Json<'a>>,
        /// The owner. Model servers name themselves here.
        "owned_by" owned_by: Option<Cow<'a, str>>,
    }
}

impl Model<'_> {
    /// Returns the name and the owner, which are empty if they are missing.
    pub fn id_and_owner(&self) -> (&str, &str) {
        let [id, owner] =
            [&self.id, &self.owned_by].map(|text| text.as_deref().unwrap_or_default());
        (id, owner)
    }
}

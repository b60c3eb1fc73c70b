//! The response of `GET /v1/models`.

use std::borrow::Cow;

use crate::json::Json;

object! {
    /// A page of the list of models.
    pub struct ModelPage<'a> {
        /// The models.
        "data" data: Vec<Model<'a>>,
        /// Whether another page follows.
        "has_more" has_more: Option<bool>,
        /// The id of the first model, or `null`.
        "first_id" first_id: Option<Json<'a>>,
        /// The id of the last model, or `null`.
        "last_id" last_id: Option<Json<'a>>,
    }

    /// A model.
    pub struct Model<'a> {
        /// `model`
        "type" kind: Option<Cow<'a, str>>,
        /// The name for requests.
        "id" id: Option<Cow<'a, str>>,
        /// The name for people.
        "display_name" display_name: Option<Cow<'a, str>>,
        /// The time of its release, as in RFC 3339.
        "created_at" created_at: Option<Cow<'a, str>>,
    }
}

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

impl<'a> ModelPage<'a> {
    /// Creates the only page, with these models. Their release is unknown.
    pub fn new(ids: impl IntoIterator<Item = Cow<'a, str>>) -> Self {
        let data: Vec<Model<'a>> = ids.into_iter().map(Model::new).collect();
        let id =
            |model: Option<&Model<'a>>| Json::new(&model.and_then(|model| model.id.as_deref()));
        Self {
            has_more: Some(false),
            first_id: Some(id(data.first())),
            last_id: Some(id(data.last())),
            data,
            ..Self::default()
        }
    }
}

impl<'a> Model<'a> {
    /// Creates a model with this name. Its release is unknown.
    pub fn new(id: Cow<'a, str>) -> Self {
        Self {
            kind: Some("model".into()),
            display_name: Some(id.clone()),
            id: Some(id),
            created_at: Some("1970-01-01T00:00:00Z".into()),
            ..Self::default()
        }
    }
}

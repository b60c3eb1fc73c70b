//! `GET /v1/models`: what the model's server says.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::refusal::Refusal;
use crate::server::chat::{asking, request_id, within};
use crate::server::report::Ticket;
use crate::server::{Shared, answer};

pub(super) async fn models(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let id = request_id(&headers);
    let mut ticket = Ticket::new(Arc::clone(&shared), "/v1/models", id.clone(), None);
    let response = match list(&shared, &headers, &id).await {
        Ok(response) => {
            ticket.end(200, None);
            response
        }
        Err(refusal) => {
            ticket.end(refusal.status, Some(&refusal));
            answer::refused(&refusal)
        }
    };
    within(&shared, response, &id)
}

async fn list(shared: &Shared, headers: &HeaderMap, id: &str) -> Result<Response, Refusal> {
    shared.keys.caller(headers)?;
    let asking = asking(shared, headers, id);
    let mut list = shared.connection.models(&asking).await?;
    let body = list.whole(shared.config.limits.answer).await?;
    let content_type = list.content_type.take().unwrap_or(answer::JSON);
    Ok(answer::with(200, content_type, Body::from(body)))
}

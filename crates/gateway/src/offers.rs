//! Offers that were read already.

use std::sync::{Arc, Mutex, PoisonError};

use plaincall_wire::openai::ChatCompletionRequest;

use crate::offer::Offer;
use crate::refusal::Refusal;

const MOST: usize = 256;
/// How long their texts may be together, in bytes. What is made of many small tools takes fifty times as much.
const MOST_BYTES: usize = 512 << 10;

/// Offers of earlier requests: who offers the same tools again, as clients do in each request of a conversation, need
/// not wait until they are read again. Nothing that a request comes to depends on what is kept here.
///
/// They are looked through one after another; the one that was asked for last is the last. Texts of other lengths differ at
/// a glance, and all of them together are not longer than one long request.
#[derive(Debug, Default)]
pub struct Offers(Mutex<Vec<(Box<str>, Arc<Offer>)>>);

impl Offers {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn read(&self, request: &ChatCompletionRequest<'_>) -> Result<Arc<Offer>, Refusal> {
        let text = request.tools.as_ref().map_or("", |tools| tools.text());
        if let Some(offer) = self.find(text) {
            return Ok(offer);
        }
        // Others need not wait for this one.
        let offer = Arc::new(Offer::read(request)?);
        self.keep(text, &offer);
        Ok(offer)
    }

    fn find(&self, text: &str) -> Option<Arc<Offer>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().rposition(|(known, _)| **known == *text)?;
        kept.get_mut(place..)?.rotate_left(1);
        kept.last().map(|(_, offer)| Arc::clone(offer))
    }

    fn keep(&self, text: &str, offer: &Arc<Offer>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two requests may have read it at the same time.
        if text.len() > MOST_BYTES || kept.iter().any(|(known, _)| **known == *text) {
            return;
        }
        kept.push((text.into(), Arc::clone(offer)));
        while kept.len() > MOST || bytes(&kept) > MOST_BYTES {
            kept.remove(0);
        }
    }
}

fn bytes(kept: &[(Box<str>, Arc<Offer>)]) -> usize {
    kept.iter().map(|(text, _)| text.len()).sum()
}

//! A cache of parsed tools.

use std::sync::{Arc, Mutex, PoisonError};

use plaincall_wire::openai::ChatCompletionRequest;

use crate::error::GatewayError;
use crate::tools::OfferedTools;

const MAX_ENTRIES: usize = 256;
/// How long their texts may be together, in bytes. What is made of many small tools takes fifty times as much.
const MAX_BYTES: usize = 512 << 10;

/// A cache of parsed tools, least recently used first. Clients send the same tools in every request of a conversation.
#[derive(Debug, Default)]
pub struct ToolCache(Mutex<Vec<(Box<str>, Arc<OfferedTools>)>>);

impl ToolCache {
    /// Without any.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn read(
        &self,
        request: &ChatCompletionRequest<'_>,
    ) -> Result<Arc<OfferedTools>, GatewayError> {
        let text = request.tools.as_ref().map_or("", |tools| tools.text());
        if let Some(offer) = self.find(text) {
            return Ok(offer);
        }
        // Others need not wait for this one.
        let offer = Arc::new(OfferedTools::read(request)?);
        self.keep(text, &offer);
        Ok(offer)
    }

    fn find(&self, text: &str) -> Option<Arc<OfferedTools>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().rposition(|(known, _)| **known == *text)?;
        kept.get_mut(place..)?.rotate_left(1);
        kept.last().map(|(_, offer)| Arc::clone(offer))
    }

    fn keep(&self, text: &str, offer: &Arc<OfferedTools>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Two requests may have read it at the same time.
        if text.len() > MAX_BYTES || kept.iter().any(|(known, _)| **known == *text) {
            return;
        }
        kept.push((text.into(), Arc::clone(offer)));
        while kept.len() > MAX_ENTRIES || bytes(&kept) > MAX_BYTES {
            kept.remove(0);
        }
    }
}

fn bytes(kept: &[(Box<str>, Arc<OfferedTools>)]) -> usize {
    kept.iter().map(|(text, _)| text.len()).sum()
}

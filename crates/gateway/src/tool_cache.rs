//! A cache of parsed tools.

use std::sync::{Arc, Mutex, PoisonError};

use plaincall_wire::openai::ChatCompletionRequest;

use crate::error::GatewayError;
use crate::tools::OfferedTools;

const MAX_ENTRIES: usize = 256;
/// The maximum total length of the cached definitions, in bytes. Parsed definitions may take fifty times as much.
const MAX_BYTES: usize = 512 << 10;

/// A cache of parsed tools in order of use. Clients send the same tools in every request of a conversation.
#[derive(Debug, Default)]
pub struct ToolCache(Mutex<Vec<(Box<str>, Arc<OfferedTools>)>>);

impl ToolCache {
    /// Creates an empty cache.
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
        // The lock is not held meanwhile.
        let offer = Arc::new(OfferedTools::read(request)?);
        self.keep(text, &offer);
        Ok(offer)
    }

    fn find(&self, text: &str) -> Option<Arc<OfferedTools>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = kept.iter().rposition(|(known, _)| **known == *text)?;
        kept.get_mut(index..)?.rotate_left(1);
        kept.last().map(|(_, offer)| Arc::clone(offer))
    }

    fn keep(&self, text: &str, offer: &Arc<OfferedTools>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have added it meanwhile.
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

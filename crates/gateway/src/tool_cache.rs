//! A cache of parsed tools.

use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use plaincall_wire::Json;
use plaincall_wire::openai::ChatCompletionRequest;

use crate::error::GatewayError;
use crate::tools::OfferedTools;

const MAX_ENTRIES: usize = 256;
/// The maximum total length of the cached definitions, in bytes. Parsed definitions may take fifty times as much.
const MAX_BYTES: usize = 512 << 10;

/// A cache of parsed tools in order of use. Clients send the same tools in every request of a conversation.
#[derive(Debug, Default)]
pub struct ToolCache(Mutex<Vec<Arc<KnownTools>>>);

/// Tools of an earlier request.
#[derive(Debug)]
struct KnownTools {
    definitions: Json<'static>,
    offer: Arc<OfferedTools>,
}

/// A body without its tools, which are known.
#[derive(Debug)]
pub(crate) struct ShortBody {
    body: Vec<u8>,
    /// The position of the value that is in the place of the tools.
    at: usize,
    tools: Arc<KnownTools>,
}

const FIELD: &[u8] = b"\"tools\":";
/// A complete value, which no following byte can extend.
const PLACEHOLDER: &[u8] = b"\"\"";

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
        let index = kept.iter().rposition(|known| known.text() == text)?;
        kept.get_mut(index..)?.rotate_left(1);
        kept.last().map(|known| Arc::clone(&known.offer))
    }

    /// Returns a chat completions request without its tools if they are known. Most of a request is its tools, and this is
    /// faster than to read them as JSON.
    pub(crate) fn without_known(&self, body: &[u8]) -> Option<ShortBody> {
        let (before, value) = body.split_at_checked(memmem::find(body, FIELD)? + FIELD.len())?;
        let value = value.trim_ascii_start();
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = kept.iter().rev();
        let tools = kept.find(|known| value.starts_with(known.text().as_bytes()))?;
        let after = value.get(tools.text().len()..)?;
        Some(ShortBody {
            body: [before, PLACEHOLDER, after].concat(),
            at: before.len(),
            tools: Arc::clone(tools),
        })
    }

    fn keep(&self, text: &str, offer: &Arc<OfferedTools>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have added it meanwhile.
        if text.len() > MAX_BYTES || kept.iter().any(|known| known.text() == text) {
            return;
        }
        let Ok(definitions) = Json::parse(text) else {
            return;
        };
        kept.push(Arc::new(KnownTools {
            definitions: definitions.into_owned(),
            offer: Arc::clone(offer),
        }));
        while kept.len() > MAX_ENTRIES || bytes(&kept) > MAX_BYTES {
            kept.remove(0);
        }
    }
}

impl KnownTools {
    fn text(&self) -> &str {
        self.definitions.text()
    }
}

impl ShortBody {
    /// Reads the body, and adds the tools. Returns `None` if it cannot be read, or the tools are at another place in it.
    pub(crate) fn read(&self) -> Option<ChatCompletionRequest<'_>> {
        let mut request: ChatCompletionRequest<'_> = plaincall_wire::read(&self.body).ok()?;
        let value = self.body.get(self.at..)?.as_ptr();
        let tools = request.tools.as_mut();
        let tools = tools.filter(|tools| std::ptr::eq(tools.text().as_ptr(), value))?;
        *tools = self.tools.definitions.clone();
        Some(request)
    }
}

fn bytes(kept: &[Arc<KnownTools>]) -> usize {
    kept.iter().map(|known| known.text().len()).sum()
}

use plaincall_wire::anthropic::{MessageResponse, MessagesRequest, StreamEvent};
use plaincall_wire::ollama::{ChatRequest, ChatResponse};
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ChunkHead, ChunkWriter, ModelList,
    read_error,
};
use plaincall_wire::{read, write};

macro_rules! check {
    ($data:expr, $($kind:ident),*) => { $(
        if let Ok(value) = read::<$kind>($data) {
            let text = write(&value);
            let again: $kind = read(text.as_bytes()).expect("what was written");
            assert_eq!(again, value);
            assert_eq!(write(&again), text);
        }
    )* };
}

/// A request, a response or a chunk that can be read can be written, and is then read as the same.
pub fn wire_round_trip(data: &[u8]) {
    check!(
        data,
        ChatCompletionRequest,
        ChatCompletion,
        ChatCompletionChunk,
        ModelList,
        MessagesRequest,
        MessageResponse,
        StreamEvent,
        ChatRequest,
        ChatResponse
    );
    read_error(data);
    if let Ok(request) = read::<ChatCompletionRequest>(data) {
        let _ = request.tools();
    }
    if let Ok(chunk) = read::<ChatCompletionChunk>(data) {
        let mut writer = ChunkWriter::new(&ChunkHead::default(), 0);
        let mut out = Vec::new();
        writer.carry(&chunk, 0);
        writer.finish("stop", &mut out);
        let event = std::str::from_utf8(&out).expect("UTF-8");
        let event = event.strip_prefix("data: ").expect("one line of data");
        let event = event.strip_suffix("\n\n").expect("one event");
        assert!(!event.contains(['\n', '\r']));
        ChatCompletionChunk::read(event).expect("JSON");
    }
}

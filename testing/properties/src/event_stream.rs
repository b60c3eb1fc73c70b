use std::fmt::Write as _;

use plaincall_wire::sse::{Decoder, Limits};

fn decode<'c>(limits: Limits, pieces: impl Iterator<Item = &'c [u8]>) -> String {
    let mut decoder = Decoder::new().limits(limits);
    let mut output = String::new();
    for piece in pieces {
        for event in decoder.feed(piece) {
            let _ = writeln!(output, "{event:?}");
        }
    }
    output + &format!("{:?}", decoder.finish())
}

/// Chunk boundaries make no difference to a stream of events. Three bytes select the limits and the size of the chunks.
pub fn event_stream(data: &[u8]) {
    let Some(([line, event, size], stream)) = data.split_first_chunk::<3>() else {
        return;
    };
    let limits = Limits::new()
        .line(usize::from(*line) * 8)
        .event(usize::from(*event) * 8);
    let size = usize::from(*size % 16) + 1;
    assert_eq!(
        decode(limits, stream.chunks(size)),
        decode(limits, std::iter::once(stream))
    );
}

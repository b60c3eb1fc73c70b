//! The memory that the host shares, and the objects that live between calls.

use std::cell::{Cell, RefCell};

use plaincall_names::DialectOptions;
use plaincall_reply::document::DocumentReader;
use plaincall_syntax::{ByteParser, OpenContent};
use plaincall_tool::NoTools;

use crate::error::Error;
use crate::events;

/// An object of the host.
pub(crate) enum Object {
    Parser(Box<ByteParser>),
    #[cfg(feature = "gateway")]
    Tools(Box<crate::toolbox::Tools>),
    #[cfg(feature = "gateway")]
    Reader(Box<crate::toolbox::Reader>),
    #[cfg(feature = "gateway")]
    Plan(Box<plaincall_plan::ReplyPlan>),
    #[cfg(feature = "gateway")]
    Transport(Box<plaincall_gateway::transport::Transport>),
    #[cfg(feature = "gateway")]
    Asked(Box<plaincall_gateway::transport::Asked>),
    #[cfg(feature = "gateway")]
    CountTokens(Box<plaincall_gateway::transport::CountTokens>),
}

/// The objects, and the output of the last call.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) output: Vec<u8>,
    /// What continues in the parser or reader that this call has fed.
    open: Option<OpenContent>,
    /// The reader of complete texts in the dialect that was used last: most programs use one.
    pub(crate) documents: Option<(DialectOptions, DocumentReader<NoTools>)>,
    /// By number, in order.
    objects: Vec<(u32, Object)>,
    /// The number of the next object. None is used again: an object that is used after its end must not be another one.
    next: u32,
}

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static STATE: RefCell<State> = RefCell::default();
    static OUTPUT: Cell<[u32; 9]> = const { Cell::new([0; 9]) };
}

/// The input keeps at most this many bytes between calls.
const MOST_KEPT: usize = 1 << 20;

/// Returns a place for this many bytes, or null if there is none.
pub(crate) fn input(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        if input.len() < length || input.len() > MOST_KEPT.max(length) {
            *input = Vec::new();
            let room = length.checked_next_power_of_two().unwrap_or(length);
            if input.try_reserve_exact(room).is_err() {
                return std::ptr::null_mut();
            }
            input.resize(room, 0);
        }
        input.as_mut_ptr()
    })
}

/// Returns the address of nine numbers of 32 bits, which never changes: where the output of the last call begins, and its length;
/// what continues in a parser or reader that was fed (0: not known, 1: text, 2: a value that ends with a line, 3: another value), and
/// the bits of its [`first_bytes`](OpenContent::first_bytes) for ASCII and for the first bytes of other characters, low ones first.
pub(crate) fn output() -> *const u32 {
    OUTPUT.with(|output| output.as_ptr().cast())
}

/// Runs a function that writes the output. Returns 1 if that is an error.
pub(crate) fn with(run: impl FnOnce(&mut State, &[u8]) -> Result<(), Error>) -> u32 {
    STATE.with_borrow_mut(|state| {
        if state.output.capacity() > MOST_KEPT {
            state.output = Vec::new();
        }
        state.output.clear();
        let result = INPUT.with_borrow(|input| run(state, input));
        if let Err(error) = &result {
            state.output.clear();
            // Writing to memory does not fail.
            let _ = serde_json::to_writer(&mut state.output, error);
        }
        // Addresses have 32 bits in WebAssembly.
        let place = [state.output.as_ptr().addr(), state.output.len()];
        let [start, length] = place.map(|number| u32::try_from(number).unwrap_or_default());
        let open = state.open.take();
        let kind = open.map_or(0, |open| match (open.is_value, open.ends_with_line) {
            (false, _) => 1,
            (true, true) => 2,
            (true, false) => 3,
        });
        let [low, high, _, others] = open.map_or([0; 4], |open| open.first_bytes);
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        let mut output = [start, length, kind, 0, 0, 0, 0, 0, 0];
        for (slot, bits) in output[3..].chunks_exact_mut(2).zip([low, high, others]) {
            slot.copy_from_slice(&[half(bits), half(bits >> 32)]);
        }
        OUTPUT.set(output);
        u32::from(result.is_err())
    })
}

impl State {
    /// Adds an object, and returns its number.
    pub(crate) fn add(&mut self, object: Object) -> u32 {
        let number = self.next;
        // Not even a server reaches the last number: parsers are not this fast.
        self.next = number.saturating_add(1);
        self.objects.push((number, object));
        number
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Object> {
        let place = self.place(number)?;
        Some(self.objects.remove(place).1)
    }

    #[cfg(feature = "gateway")]
    pub(crate) fn get(&mut self, number: u32) -> Option<&mut Object> {
        let place = self.place(number)?;
        Some(&mut self.objects.get_mut(place)?.1)
    }

    fn place(&self, number: u32) -> Option<usize> {
        let found = self.objects.binary_search_by_key(&number, |one| one.0);
        found.ok()
    }

    /// Feeds an object, and writes its events or bytes. The host has made the events of `advanced` bytes: before the chunk for a parser,
    /// and at its beginning for a reader, which needs the values.
    pub(crate) fn feed(&mut self, number: u32, chunk: &[u8], advanced: usize) -> Result<(), Error> {
        let place = self.place(number).unwrap_or(usize::MAX);
        match self.objects.get_mut(place).map(|one| &mut one.1) {
            Some(Object::Parser(parser)) => {
                parser.advance(advanced);
                for event in parser.feed(chunk) {
                    events::write(&mut self.output, &event)?;
                }
                self.open = parser.open_content();
                Ok(())
            }
            #[cfg(feature = "gateway")]
            Some(Object::Reader(reader)) => {
                reader.feed(&mut self.output, chunk, advanced)?;
                self.open = reader.open_content();
                Ok(())
            }
            #[cfg(feature = "gateway")]
            Some(Object::Asked(asked)) => {
                crate::exchange::feed(asked, &mut self.output, chunk);
                Ok(())
            }
            _ => Err(Error::finished()),
        }
    }
}

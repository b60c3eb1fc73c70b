//! The core of the npm package `plaincall`: the functions that its WebAssembly modules export.
//!
//! The host writes bytes into [`input`], calls a function with their length, and reads the bytes at [`output`]. Objects that
//! live between calls have a number. Each function returns 0, or 1 if the output is an error: `{"kind", "message"}`.
//!
//! A module is used by one thread, and memory is read and written by the host only between calls.

mod dialect;
mod document;
mod error;
mod events;
#[cfg(feature = "gateway")]
mod exchange;
mod operation;
#[cfg(feature = "gateway")]
mod plan;
mod state;
#[cfg(feature = "gateway")]
mod toolbox;

use crate::state::with;

/// The version of the package.
const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// A section of the module with the version, which the host compares with its own.
#[expect(unsafe_code, reason = "the section has no other content")]
#[unsafe(link_section = "plaincall")]
#[used]
static SECTION: [u8; VERSION.len()] = match VERSION.first_chunk() {
    Some(version) => *version,
    None => [0; VERSION.len()],
};

/// Defines exported functions. The attribute is `unsafe`, but no other function has such a name.
macro_rules! exports {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[expect(unsafe_code, reason = "exported names must be unique, and these are")]
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($argument: $kind),*) -> $result {
                $body
            }
        )*
    };
}

exports! {
    /// Returns where the host writes the input of the next call, of at most this many bytes; 0 if there is no memory.
    fn input(length: usize) -> *mut u8 = state::input(length);
    /// Returns the address of the numbers that describe the output of the last call (`state.rs`). It never changes.
    fn output() -> *const u32 = state::output();
    /// Performs an operation. The input has its JSON, then a text or other bytes.
    fn perform(json_length: usize, length: usize) -> u32 = with(|state, input| {
        let (json, rest) = input.get(..length).and_then(|input| input.split_at_checked(json_length)).unwrap_or_default();
        operation::perform(state, json, rest)
    });
    /// Feeds an object: a parser, a reader of replies, or an exchange with a model server. The host knows the events of `advanced`
    /// bytes: it has not fed them to a parser, and the chunk for a reader begins with them.
    fn feed(object: u32, length: usize, advanced: usize) -> u32 = with(|state, input| {
        let chunk = input.get(..length).unwrap_or_default();
        state.feed(object, chunk, advanced)
    });
    /// Marks the module with everything: the parser's has no such function.
    #[cfg(feature = "gateway")]
    fn has_tools() -> u32 = 1;
    /// Forgets an object.
    fn release(object: u32) -> u32 = with(|state, _| {
        state.remove(object);
        Ok(())
    });
}

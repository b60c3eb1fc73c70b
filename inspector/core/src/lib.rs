//! The core of the inspector page: the functions that its WebAssembly module exports.
//!
//! The page writes bytes into [`input`], calls [`perform`] with their lengths, and reads the bytes at [`output`]. Nothing else
//! is kept between calls. The input is a JSON operation, then the text of the tools, then the text of the reply. The output is
//! JSON; [`perform`] returns 1 if it is the message of an error.
//!
//! A module is used by one thread, and memory is read and written by the page only between calls.

mod detect;
mod operation;
mod parts;
mod replay;
mod reply;
mod seeds;
mod settings;
mod texts;

use std::cell::{Cell, RefCell};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static RESULT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static PLACE: Cell<[u32; 2]> = const { Cell::new([0; 2]) };
}

/// Defines exported functions. Beside `seeds`, the attribute is the only use of `unsafe` of the crate: no other function has such a name.
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
    /// Returns where the page writes the input of the next call, of this many bytes.
    fn input(length: usize) -> *mut u8 = INPUT.with_borrow_mut(|input| {
        *input = vec![0; length];
        input.as_mut_ptr()
    });
    /// Returns the address of two numbers of 32 bits: where the output of the last call begins, and its length. It never changes.
    fn output() -> *const u32 = PLACE.with(|place| place.as_ptr().cast());
    /// Performs the operation of this many bytes, with tools of this many bytes. The rest of the input is the reply.
    fn perform(operation_length: usize, tools_length: usize) -> u32 = {
        let input = INPUT.take();
        let (operation, rest) = input.split_at_checked(operation_length).unwrap_or_default();
        let (tools, reply) = rest.split_at_checked(tools_length).unwrap_or_default();
        let (output, status) = match operation::perform(operation, tools, reply) {
            Ok(output) => (output, 0),
            // A text can always be written as JSON.
            Err(message) => (serde_json::to_vec(&message).unwrap_or_default(), 1),
        };
        RESULT.with_borrow_mut(|result| {
            *result = output;
            // Addresses have 32 bits in WebAssembly.
            let place = [result.as_ptr().addr(), result.len()];
            PLACE.set(place.map(|number| u32::try_from(number).unwrap_or_default()));
        });
        status
    };
}

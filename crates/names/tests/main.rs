//! All tests of the public interface of the crate, in one program.

mod nearest;

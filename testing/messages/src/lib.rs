//! The compiler's messages for invalid tools: programs that do not compile (`examples/`), each with the
//! messages that are expected (`.stderr`).

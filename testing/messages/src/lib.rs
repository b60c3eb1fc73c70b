//! What the compiler says to people whose tool does not fit: programs that do not compile (`examples/`), each with the
//! messages that are expected (`.stderr`).

//! Handshakes that must not succeed, and what they do to those that must.

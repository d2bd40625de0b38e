//! HTTP/2 frames by hand (RFC 9113), as a client would not send them.

/// What a connection begins with: the preface, and settings that change nothing.
pub fn begin() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings()].concat()
}

/// Settings that change nothing; the server must acknowledge them.
pub fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[])
}

/// A ping, which the server must answer.
pub fn ping() -> Vec<u8> {
    frame(6, 0, 0, &[0; 8])
}

/// A priority for a stream, which means nothing any more.
pub fn priority(stream: u32) -> Vec<u8> {
    frame(2, 0, stream, &[0, 0, 0, 0, 15])
}

/// A part of a body without a byte.
pub fn empty_data(stream: u32) -> Vec<u8> {
    frame(0, 0, stream, &[])
}

/// The head of a review that announces a body of this length, for the client's `number`th stream.
pub fn head(stream: u32, path: &str, length: usize) -> Vec<u8> {
    const END_OF_HEAD: u8 = 4;
    // Names by their index in HPACK's static table (RFC 7541, appendix A), values as they are; both are shorter than 127.
    let mut block = vec![0x83, 0x87];
    for (name, value) in
        [(&[4][..], path), (&[1], "localhost"), (&[15, 16], "application/json"), (&[15, 13], &length.to_string())]
    {
        block.extend_from_slice(name);
        block.push(u8::try_from(value.len()).unwrap());
        block.extend_from_slice(value.as_bytes());
    }
    frame(1, END_OF_HEAD, stream, &block)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

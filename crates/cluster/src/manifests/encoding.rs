//! Bytes to text: UTF-8 or UTF-16, with or without a byte order mark, as Windows PowerShell writes files.

/// Decodes a file. Without a byte order mark the first character decides, which is ASCII in every YAML or JSON text (YAML 1.2, 5.2).
///
/// # Errors
/// The text up to where it cannot be decoded.
pub fn decode(bytes: Vec<u8>) -> Result<String, String> {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => narrow(rest.to_vec()),
        [first, 0, ..] if *first != 0 => wide(&bytes, u16::from_le_bytes),
        [0, second, ..] if *second != 0 => wide(&bytes, u16::from_be_bytes),
        _ => narrow(bytes),
    }
}

fn narrow(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        bytes.truncate(valid);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(pairs.len());
    for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match c {
            Ok(c) => text.push(c),
            Err(_) => return Err(text),
        }
    }
    if rest.is_empty() { Ok(text) } else { Err(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn every_encoding_that_powershell_writes_is_read() {
        let text = "a: é😀\r\nb: 1\r\n";
        let marked = format!("\u{feff}{text}");
        for bytes in [
            text.as_bytes().to_vec(),
            marked.as_bytes().to_vec(),
            utf16(text, u16::to_le_bytes),
            utf16(text, u16::to_be_bytes),
            utf16(&marked, u16::to_le_bytes),
            utf16(&marked, u16::to_be_bytes),
        ] {
            assert_eq!(decode(bytes.clone()).as_deref(), Ok(text), "{bytes:x?}");
        }
        assert_eq!(decode(Vec::new()).as_deref(), Ok(""));
    }

    #[test]
    fn what_is_no_text_gives_the_text_before_it() {
        assert_eq!(decode(b"a\nb\xff".to_vec()).unwrap_err(), "a\nb");
        assert_eq!(decode(b"\xff\xfea\0b".to_vec()).unwrap_err(), "a");
        assert_eq!(decode(b"\xff\xfea\0\0\xd8".to_vec()).unwrap_err(), "a");
        assert_eq!(decode(vec![0; 3]).as_deref(), Ok("\0\0\0"));
    }
}

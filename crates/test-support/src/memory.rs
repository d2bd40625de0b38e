//! What is in the memory of a process.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
};

/// What is read at once: a page.
const PIECE: usize = 4096;

/// Whether a process has these bytes in what it can write. The allocator reserves a gigabyte, nearly all of which is empty.
pub fn holds(process: u32, needle: &[u8]) -> bool {
    let maps = BufReader::new(File::open(format!("/proc/{process}/maps")).unwrap());
    let mut memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let empty = vec![0; PIECE];
    maps.lines().map(Result::unwrap).filter(|map| map.split(' ').nth(1).unwrap().starts_with("rw")).any(|map| {
        let (start, end) = map.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        memory.seek(SeekFrom::Start(start)).unwrap();
        // The end of the piece before: what is searched for may be in two of them.
        let mut before = Vec::new();
        (start..end).step_by(PIECE).any(|_| {
            let mut piece = vec![0; PIECE];
            if memory.read_exact(&mut piece).is_err() || piece == empty {
                before.clear();
                return false;
            }
            let bytes = [&before[..], &piece].concat();
            before = piece[PIECE - needle.len()..].to_vec();
            bytes.windows(needle.len()).any(|window| window == needle)
        })
    })
}

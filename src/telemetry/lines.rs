//! Log lines on their way out: collected in memory, written by a thread of their own.
//!
//! What always holds: code that logs never waits for the reader of the log; no more than [`ROOM`] is held, what does not fit
//! is dropped and counted; a line is written at most [`PAUSE`] after it was logged where the reader keeps up; when
//! [`Writing`] is dropped, what is left is written. Many lines are one write, which matters when every pod is a line.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

/// How long lines are collected before they are written.
const PAUSE: Duration = Duration::from_millis(10);

/// The most that may be waiting to be written, in bytes.
const ROOM: usize = 1024 * 1024;

/// How long the end of the process may wait for a reader that does not read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Where lines are put. Clones put them into the same place.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Told when a line comes where there was none, and at the end.
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    /// No further line will come.
    ending: bool,
    /// All lines are written, and the thread is about to end.
    ended: bool,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lines {
    /// Starts the thread that writes into `out`, and that tells `report` how many lines were dropped.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn write_to(
        &self,
        out: impl Write + Send + 'static,
        report: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Writing> {
        let lines = self.clone();
        thread::Builder::new().name("log".to_owned()).spawn(move || lines.drain(out, report))?;
        Ok(Writing(self.clone()))
    }

    /// Takes a whole line, or drops it.
    pub(super) fn add(&self, line: &[u8]) {
        let mut waiting = self.0.waiting();
        if waiting.text.len() + line.len() > ROOM {
            waiting.dropped += 1;
        } else {
            waiting.text.extend_from_slice(line);
            if waiting.text.len() == line.len() {
                self.0.changed.notify_all();
            }
        }
    }

    fn drain(&self, mut out: impl Write, report: impl Fn(u64)) {
        let mut text = Vec::new();
        loop {
            let (dropped, ending) = self.take(&mut text);
            // That the log cannot be written can be said nowhere.
            let _ = out.write_all(&text).and_then(|()| out.flush());
            text.clear();
            if dropped > 0 {
                report(dropped);
            } else if ending {
                break;
            }
        }
        self.0.waiting().ended = true;
        self.0.changed.notify_all();
    }

    /// Waits for a line and for what follows it closely, and takes all of them.
    fn take(&self, text: &mut Vec<u8>) -> (u64, bool) {
        let changed = &self.0.changed;
        let waiting = changed.wait_while(self.0.waiting(), |waiting| waiting.text.is_empty() && !waiting.ending);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let collected = changed.wait_timeout_while(waiting, PAUSE, |waiting| !waiting.ending);
        let (mut waiting, _) = collected.unwrap_or_else(PoisonError::into_inner);
        mem::swap(text, &mut waiting.text);
        (mem::take(&mut waiting.dropped), waiting.ending)
    }
}

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// While this lives, lines are written; dropping it writes what is left.
#[must_use]
pub struct Writing(Lines);

impl Drop for Writing {
    fn drop(&mut self) {
        let shared = &self.0.0;
        let mut waiting = shared.waiting();
        waiting.ending = true;
        shared.changed.notify_all();
        // A poisoned lock means that the writing thread is gone: there is nothing to wait for.
        let _ = shared.changed.wait_timeout_while(waiting, LAST_WORDS, |waiting| !waiting.ended);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

    use super::*;

    /// Hands over what is written, and writes only when it is let.
    struct Reader {
        writes: Sender<String>,
        gate: Receiver<()>,
    }

    impl Write for Reader {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.gate.recv().map_err(io::Error::other)?;
            self.writes.send(String::from_utf8(text.to_vec()).unwrap()).map_err(io::Error::other)?;
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Log {
        lines: Lines,
        gate: SyncSender<()>,
        writes: Receiver<String>,
        drops: Receiver<u64>,
        writing: Writing,
    }

    fn log() -> Log {
        let ((gate, let_write), (sent, writes), (counted, drops)) =
            (mpsc::sync_channel(100), mpsc::channel(), mpsc::channel());
        let lines = Lines::default();
        let reader = Reader { writes: sent, gate: let_write };
        let writing = lines.write_to(reader, move |dropped| counted.send(dropped).unwrap()).unwrap();
        Log { lines, gate, writes, drops, writing }
    }

    /// As tracing does: a line is one write.
    fn put(mut lines: &Lines, line: &str) {
        lines.write_all(line.as_bytes()).unwrap();
    }

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn lines_come_whole_and_in_order_and_many_at_once() {
        let log = log();
        (0..100).for_each(|_| log.gate.send(()).unwrap());
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let lines = log.lines.clone();
                std::thread::spawn(move || (0..500).for_each(|n| put(&lines, &format!("{thread} {n}\n"))))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        drop(log.writing);
        let writes: Vec<String> = log.writes.try_iter().collect();
        let text = writes.concat();
        for thread in 0..4 {
            let ours = text.lines().filter_map(|line| line.strip_prefix(&format!("{thread} ")));
            assert!(ours.eq((0..500).map(|n| n.to_string()).collect::<Vec<_>>()), "{thread}");
        }
        assert_eq!(text.lines().count(), 2000);
        assert!(writes.len() <= 100, "{} writes", writes.len());
    }

    #[test]
    fn a_line_that_comes_alone_is_written_soon() {
        let log = log();
        log.gate.send(()).unwrap();
        put(&log.lines, "alone\n");
        assert_eq!(log.writes.recv_timeout(LIMIT).unwrap(), "alone\n");
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_not_time_or_memory() {
        let log = log();
        put(&log.lines, "first\n");
        // From here on the thread is in the middle of its first write.
        while !log.lines.0.waiting().text.is_empty() {
            thread::yield_now();
        }
        let line = "x".repeat(1024);
        (0..ROOM / 1024 + 7).for_each(|_| put(&log.lines, &line));
        assert_eq!(log.lines.0.waiting().text.len(), ROOM);
        (0..2).for_each(|_| log.gate.send(()).unwrap());
        assert_eq!(log.drops.recv_timeout(LIMIT).unwrap(), 7);
        assert_eq!(log.writes.iter().take(2).map(|text| text.len()).collect::<Vec<_>>(), [6, ROOM]);
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let log = log();
        put(&log.lines, "never read\n");
        drop(log.writing);
        assert!(log.writes.try_recv().is_err());
    }
}

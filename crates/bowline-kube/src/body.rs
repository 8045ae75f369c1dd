//! Bodies of answers: whole, up to a limit, or line by line.

use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;

/// The longest line of a watch that is taken in. The API server's own limit is far below.
const LONGEST_LINE: usize = 32 << 20;
/// A buffer above this size is given back when it is empty, so that one large object does not cost
/// an idle watch its memory.
const KEPT: usize = 16 << 10;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The connection broke.
    Broken(String),
    /// It is longer than we take in.
    TooLong(usize),
}

/// The whole body, if it is no longer than `limit`.
pub(crate) async fn whole(mut body: Body, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut out = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Unread::Broken(crate::refusal::chain(&e)))?;
        let Ok(data) = frame.into_data() else { continue };
        if out.len() + data.len() > limit {
            return Err(Unread::TooLong(limit));
        }
        out.extend_from_slice(&data);
    }
    Ok(out)
}

/// The lines of a body that goes on for long.
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Up to here there is no end of a line.
    searched: usize,
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), searched: 0 }
    }

    /// The next whole line, or none at the end. What a broken connection left of a line is dropped:
    /// nobody can tell whether it is all. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<BytesMut>, Unread> {
        loop {
            if let Some(line) = self.take_line() {
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                continue;
            }
            if self.buffer.len() > LONGEST_LINE {
                return Err(Unread::TooLong(LONGEST_LINE));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|e| Unread::Broken(crate::refusal::chain(&e)))?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let found = self.buffer[self.searched..].iter().position(|b| *b == b'\n');
        let Some(found) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + found);
        self.buffer.advance(1);
        self.searched = 0;
        if self.buffer.is_empty() && self.buffer.capacity() + line.capacity() > KEPT {
            self.buffer = BytesMut::new();
        }
        Some(line)
    }
}

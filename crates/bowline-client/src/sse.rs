//! Reading `text/event-stream`, byte by byte, with no I/O of its own.

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its `id`, if it has one.
    pub(crate) id: Option<String>,
    /// Its `data` lines, joined.
    pub(crate) data: String,
}

/// A line or message longer than any that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {} MiB", Decoder::MAX >> 20)]
pub(crate) struct TooLong;

/// Takes bytes as they come, gives messages as they end.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    message: Message,
    has_data: bool,
    after_return: bool,
}

impl Decoder {
    const MAX: usize = 16 << 20;

    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Message>, TooLong> {
        let mut out = vec![];
        for &byte in bytes {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => out.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            self.after_return = byte == b'\r';
            if self.line.len() + self.message.data.len() > Self::MAX {
                return Err(TooLong);
            }
        }
        Ok(out)
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.message.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
                self.has_data = true;
            }
            // Comments keep the line warm; `event` repeats what the data says; `retry` is ours.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, step: usize) -> Vec<Message> {
        let mut decoder = Decoder::default();
        text.as_bytes().chunks(step).flat_map(|c| decoder.push(c).unwrap()).collect()
    }

    #[test]
    fn messages_come_out_however_the_bytes_are_cut() {
        let text = ": hello\n\nid: 7\nevent: kv\ndata: {\"a\":\ndata: 1}\n\nid: 8\r\ndata:x\r\n\r\ndata: half";
        let expected = [
            Message { id: Some("7".into()), data: "{\"a\":\n1}".into() },
            Message { id: Some("8".into()), data: "x".into() },
        ];
        for step in 1..text.len() {
            assert_eq!(all(text, step), expected, "{step}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = Decoder::default();
        let chunk = vec![b'x'; 1 << 20];
        assert!((0..20).any(|_| decoder.push(&chunk).is_err()));
    }
}

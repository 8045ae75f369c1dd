//! gRPC frames and the header lines of metadata frames, as bytes.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The flag of a frame that holds header lines.
const METADATA: u8 = 0x80;
const PREFIX: usize = 5;
/// The most headers in a frame: far more than an RPC has, far fewer than a map of them can hold.
const MOST_HEADERS: usize = 512;

/// What a client says when it will send no more.
pub(super) const END: Bytes = Bytes::from_static(&[METADATA, 0, 0, 0, 0]);

/// What one WebSocket message holds.
pub(super) enum Message {
    Data(Bytes),
    Metadata(HeaderMap),
    End,
}

/// Reads a message; none if it is no gRPC frame.
pub(super) fn read(bytes: Bytes) -> Option<Message> {
    let prefix: [u8; PREFIX] = bytes.get(..PREFIX)?.try_into().ok()?;
    let [flag, a, b, c, d] = prefix;
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if bytes.len() - PREFIX != len {
        return None;
    }
    match flag {
        0 | 1 => Some(Message::Data(bytes)),
        METADATA if len == 0 => Some(Message::End),
        METADATA => headers(&bytes[PREFIX..]).map(Message::Metadata),
        _ => None,
    }
}

/// A metadata frame of these headers.
pub(super) fn metadata(headers: &HeaderMap) -> Bytes {
    let mut lines = BytesMut::new();
    for (name, value) in headers {
        lines.put_slice(name.as_str().as_bytes());
        lines.put_slice(b": ");
        lines.put_slice(value.as_bytes());
        lines.put_slice(b"\r\n");
    }
    let mut out = BytesMut::with_capacity(PREFIX + lines.len());
    out.put_u8(METADATA);
    out.put_u32(u32::try_from(lines.len()).unwrap_or(u32::MAX));
    out.put_slice(&lines);
    out.freeze()
}

fn headers(lines: &[u8]) -> Option<HeaderMap> {
    let mut out = HeaderMap::new();
    for line in lines.split(|c| *c == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|c| *c == b':')?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok()?;
        if out.len() >= MOST_HEADERS {
            return None;
        }
        out.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    Some(out)
}

/// Takes the first whole gRPC frame off what an RPC has written: it may hold many, or a part.
pub(super) fn split(buffer: &mut BytesMut) -> Option<Bytes> {
    let prefix: [u8; PREFIX] = buffer.get(..PREFIX)?.try_into().ok()?;
    let [_, a, b, c, d] = prefix;
    let whole = PREFIX + u32::from_be_bytes([a, b, c, d]) as usize;
    (buffer.len() >= whole).then(|| buffer.split_to(whole).freeze())
}

/// Takes any bytes as one message, and as what an RPC has written.
pub(super) fn fuzz(bytes: &[u8]) {
    let given = Bytes::copy_from_slice(bytes);
    match read(given.clone()) {
        Some(Message::Data(data)) => assert_eq!(data, given),
        Some(Message::Metadata(headers)) => {
            let Some(Message::Metadata(again)) = read(metadata(&headers)) else {
                assert!(headers.is_empty(), "what was read can be written and read again");
                return;
            };
            assert_eq!(again, headers, "the way there and back changes nothing");
        }
        Some(Message::End) => assert_eq!(given, END),
        None => {}
    }
    // However the bytes come, the frames are the same, and nothing is lost.
    let step = bytes.first().map_or(1, |b| usize::from(*b) + 1);
    let (mut whole, mut parts) = (BytesMut::from(bytes), BytesMut::new());
    let (mut at_once, mut bit_by_bit) = (vec![], vec![]);
    while let Some(frame) = split(&mut whole) {
        at_once.push(frame);
    }
    for part in bytes.chunks(step) {
        parts.extend_from_slice(part);
        while let Some(frame) = split(&mut parts) {
            bit_by_bit.push(frame);
        }
    }
    assert_eq!((&at_once, &whole), (&bit_by_bit, &parts));
    assert_eq!([at_once.concat(), whole.to_vec()].concat(), bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_way_there_and_back() {
        let mut given = HeaderMap::new();
        given.insert("grpc-status", HeaderValue::from_static("7"));
        given.append("a", HeaderValue::from_static("1"));
        given.append("a", HeaderValue::from_static("2: 3"));
        let Some(Message::Metadata(got)) = read(metadata(&given)) else { panic!("no metadata") };
        assert_eq!(got, given);
        let bytes = &metadata(&given)[5..];
        assert!(bytes.starts_with(b"grpc-status: 7\r\n"));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bad in [&b""[..], b"\0\0\0", b"\0\0\0\0\x05abc", b"\x40\0\0\0\0", b"\x80\0\0\0\x02ab"] {
            assert!(read(Bytes::copy_from_slice(bad)).is_none(), "{bad:?}");
        }
        assert!(matches!(read(END), Some(Message::End)));
    }

    #[test]
    fn more_headers_than_anyone_needs_are_refused() {
        let frame = |n: usize| {
            let lines: String = (0..n).map(|n| format!("x{n}: 1\r\n")).collect();
            let mut out = BytesMut::from(&[METADATA][..]);
            out.put_u32(u32::try_from(lines.len()).unwrap());
            out.put_slice(lines.as_bytes());
            out.freeze()
        };
        assert!(matches!(read(frame(MOST_HEADERS)), Some(Message::Metadata(_))));
        assert!(read(frame(MOST_HEADERS + 1)).is_none());
        assert!(read(frame(100_000)).is_none(), "more than a map of headers can hold");
    }

    #[test]
    fn any_bytes_may_come() {
        for bytes in [&b""[..], b"\x80\0\0\0\x05a: b\n", b"\0\0\0\0\x01a\0\0\0\0\x02bc\0\0", &END] {
            fuzz(bytes);
        }
    }

    #[test]
    fn frames_written_together_are_sent_apart() {
        let mut buffer = BytesMut::from(&b"\0\0\0\0\x01a\0\0\0\0\x02bc\0\0"[..]);
        assert_eq!(split(&mut buffer).unwrap(), &b"\0\0\0\0\x01a"[..]);
        assert_eq!(split(&mut buffer).unwrap(), &b"\0\0\0\0\x02bc"[..]);
        assert!(split(&mut buffer).is_none());
    }
}

//! Protobuf, read field by field from bytes that may be anything.

/// Why bytes make no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// They are wrong.
    Shape(&'static str),
    /// They are too many of something.
    Limit(&'static str, usize),
}

/// The value of a field, as far as the wire tells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// Never used by us; a later version may.
    Fixed32,
}

impl<'a> Value<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], Bad> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Bad::Shape("a number where bytes belong")),
        }
    }

    pub(super) fn text(self) -> Result<&'a str, Bad> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Bad::Shape("text is not UTF-8"))
    }

    pub(super) fn varint(self) -> Result<u64, Bad> {
        match self {
            Self::Varint(n) => Ok(n),
            _ => Err(Bad::Shape("no varint where one belongs")),
        }
    }

    pub(super) fn fixed(self) -> Result<u64, Bad> {
        match self {
            Self::Fixed64(n) => Ok(n),
            _ => Err(Bad::Shape("no fixed64 where one belongs")),
        }
    }

    pub(super) fn flag(self) -> Result<bool, Bad> {
        Ok(self.varint()? != 0)
    }

    pub(super) fn message(self) -> Result<Reader<'a>, Bad> {
        Ok(Reader::new(self.bytes()?))
    }
}

/// The fields of one message, in the order they come.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field and its number.
    pub(super) fn field(&mut self) -> Result<Option<(u64, Value<'a>)>, Bad> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = tag >> 3;
        if number == 0 {
            return Err(Bad::Shape("field number 0"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.fixed64()?),
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(usize::try_from(len).map_err(|_| CUT)?)?)
            }
            5 => {
                self.take(4)?;
                Value::Fixed32
            }
            // Groups were dropped from protobuf before this protocol began.
            _ => return Err(Bad::Shape("unknown wire type")),
        };
        Ok(Some((number, value)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, Bad> {
        let mut out = 0u64;
        for (at, &byte) in self.rest.iter().take(10).enumerate() {
            if at == 9 && byte > 1 {
                return Err(Bad::Shape("a varint above 64 bits"));
            }
            out |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Ok(out);
            }
        }
        Err(if self.rest.len() < 10 { CUT } else { Bad::Shape("a varint above 64 bits") })
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, Bad> {
        let bytes = self.take(8)?.try_into().map_err(|_| CUT)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(CUT)?;
        self.rest = rest;
        Ok(head)
    }
}

const CUT: Bad = Bad::Shape("it ends too soon");

//! Protobuf, written field by field.

/// Bytes of a message in the making. Numbers that are zero and lists that are empty are left out,
/// as proto3 does.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: Vec<u8>,
}

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// A number, even if it is zero.
    pub(super) fn present(&mut self, field: u32, n: u64) {
        self.tag(field, 0);
        self.varint(n);
    }

    pub(super) fn number(&mut self, field: u32, n: u64) {
        if n != 0 {
            self.present(field, n);
        }
    }

    pub(super) fn flag(&mut self, field: u32, yes: bool) {
        self.number(field, u64::from(yes));
    }

    pub(super) fn fixed(&mut self, field: u32, n: u64) {
        if n != 0 {
            self.present_fixed(field, n);
        }
    }

    /// A number of fixed size, even if it is zero.
    pub(super) fn present_fixed(&mut self, field: u32, n: u64) {
        self.tag(field, 1);
        self.out.extend_from_slice(&n.to_le_bytes());
    }

    /// Bytes, even if there are none.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn some_bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.bytes(field, bytes);
        }
    }

    /// A message inside. It is written in place and then moved up by the size of its length.
    pub(super) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.tag(field, 2);
        let at = self.out.len();
        fill(self);
        let len = self.out.len() - at;
        let mut prefix = [0; 10];
        let n = put_varint(&mut prefix, len as u64);
        self.out.extend_from_slice(&prefix[..n]);
        self.out.copy_within(at..at + len, at + n);
        self.out[at..at + n].copy_from_slice(&prefix[..n]);
    }

    pub(super) fn packed_fixed(&mut self, field: u32, list: impl ExactSizeIterator<Item = u64>) {
        if list.len() == 0 {
            return;
        }
        self.tag(field, 2);
        self.varint(list.len() as u64 * 8);
        list.for_each(|n| self.out.extend_from_slice(&n.to_le_bytes()));
    }

    pub(super) fn packed(&mut self, field: u32, list: impl ExactSizeIterator<Item = u64>) {
        if list.len() == 0 {
            return;
        }
        self.message(field, |w| list.for_each(|n| w.varint(n)));
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, n: u64) {
        let mut bytes = [0; 10];
        let len = put_varint(&mut bytes, n);
        self.out.extend_from_slice(&bytes[..len]);
    }
}

fn put_varint(out: &mut [u8; 10], mut n: u64) -> usize {
    let mut len = 0;
    while n >= 0x80 {
        out[len] = (n as u8) | 0x80;
        n >>= 7;
        len += 1;
    }
    out[len] = n as u8;
    len + 1
}

//! A small generator for property tests: the same numbers from the same seed, for ever.

/// The state is the seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// Some JSON, at most `depth` deep.
    pub(crate) fn json(&mut self, depth: u64) -> serde_json::Value {
        use serde_json::Value;
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => Value::from(self.below(2000) as i64 - 1000),
            3 => Value::from(self.below(100) as f64 / 8.0),
            4 => Value::from(self.pick(&[
                "",
                "a",
                "true",
                "null",
                "1",
                "-",
                "- x",
                "a: b",
                "#c",
                "x # y",
                "two\nlines",
                "~",
                " pad ",
                "\"q\"",
                "'q'",
                "0x1f",
                "1e3",
                "2020-01-01",
                "{a}",
                "[",
                "*a",
                "&a",
                "!t",
                "\ttab",
                "tail\n",
                "no",
                "y",
                ".5",
                "1_000",
                "a:",
                "@x",
                "%y",
                "=",
                "<<",
                "\u{e9}",
            ])),
            5 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => {
                let keys = ["a", "b", "c", "key with space", "1", "true", "x/y.z", ""];
                (0..self.below(4))
                    .map(|_| (self.pick(&keys).to_owned(), self.json(depth - 1)))
                    .collect()
            }
        }
    }
}

//! Regular expressions of Go in the words of ours: the same syntax but for some corners, and in those
//! a pattern must not come to mean something else.

/// The pattern of ours that means what this one means to Go.
pub(super) fn translated(go: &str) -> String {
    let mut reader = Reader { rest: go, out: String::with_capacity(go.len() + 16) };
    while let Some(c) = reader.next() {
        match c {
            '\\' => reader.escape(Within::Nothing),
            '[' => reader.class(),
            // Without numbers it is a brace to Go.
            '{' if !is_count(reader.rest) => reader.out.push_str("\\{"),
            other => reader.out.push(other),
        }
    }
    reader.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Class,
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// What follows a backslash. To Go the usual classes are of ASCII, and `\Q` quotes up to `\E`.
    fn escape(&mut self, within: Within) {
        let Some(c) = self.next() else {
            self.out.push('\\');
            return;
        };
        match c {
            'd' => self.out.push_str("[0-9]"),
            'D' => self.out.push_str("[^0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            's' => self.out.push_str("[\\t\\n\\f\\r ]"),
            'S' => self.out.push_str("[^\\t\\n\\f\\r ]"),
            'b' if within == Within::Nothing => self.out.push_str("(?-u:\\b)"),
            'Q' if within == Within::Nothing => {
                let (quoted, rest) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.out.push_str(&regex::escape(quoted));
                self.rest = rest;
            }
            // Their braces hold a name or a number of a character.
            'p' | 'P' | 'x' if self.rest.starts_with('{') => {
                let end = self.rest.find('}').map_or(self.rest.len(), |at| at + 1);
                self.out.extend(['\\', c]);
                self.out.push_str(&self.rest[..end]);
                self.rest = &self.rest[end..];
            }
            // A mark behind a backslash is that mark, where ours may have a meaning for it.
            mark if mark.is_ascii_punctuation() && mark != '_' => {
                self.out.push_str(&regex::escape(mark.encode_utf8(&mut [0; 4])));
            }
            other => self.out.extend(['\\', other]),
        }
    }

    /// What follows an opening bracket. Ours have classes in classes and operators on them.
    fn class(&mut self) {
        self.out.push('[');
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.out.push('^');
            self.rest = rest;
        }
        // The first may be a closing bracket that closes nothing.
        if let Some(rest) = self.rest.strip_prefix(']') {
            self.out.push_str("\\]");
            self.rest = rest;
        }
        while let Some(c) = self.next() {
            match c {
                ']' => {
                    self.out.push(']');
                    return;
                }
                '\\' => self.escape(Within::Class),
                '[' if self.rest.starts_with(':') && self.rest.contains(":]") => {
                    let (name, rest) = self.rest.split_once(":]").unwrap_or((self.rest, ""));
                    self.out.extend(["[", name, ":]"]);
                    self.rest = rest;
                }
                '[' | '&' | '~' => self.out.extend(['\\', c]),
                other => self.out.push(other),
            }
        }
    }
}

/// Whether a text behind an opening brace is a count: `N}`, `N,}` or `N,M}`.
fn is_count(rest: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    let Some((count, _)) = rest.split_once('}') else { return false };
    let (least, most) = count.split_once(',').unwrap_or((count, ""));
    !least.is_empty() && digits(least) && digits(most)
}

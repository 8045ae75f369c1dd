//! Names and secrets: the principal's file of hashes, and the agent's file with its own.

use std::collections::BTreeMap;
use std::fmt;

use super::pattern::is_label;

/// What a secret is compared with if nobody has the name, so that guessing names takes as long.
/// The hash of a text that was thrown away.
pub(super) const NOBODY: &str = "$2b$10$jn0WTe95DIFoLzSW4jm36efRxkqmri1JM3XPlw21m3tqcUIf7Dw1y";

/// Agents and the bcrypt hashes of their secrets.
#[derive(Clone, Default)]
pub struct Users {
    hashes: BTreeMap<String, String>,
}

/// A line of the file that is not used; the others are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct Skipped {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it, and how to write it.
    pub problem: String,
}

impl Users {
    /// Reads a file of lines `name:hash`; `#` and `//` begin comments. If a name is there twice, the
    /// last line counts.
    pub fn parse(text: &str) -> (Self, Vec<Skipped>) {
        let (mut users, mut skipped) = (Self::default(), vec![]);
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
                continue;
            }
            match entry_of(line) {
                Ok((name, hash)) => {
                    if users.hashes.insert(name.to_owned(), hash.to_owned()).is_some() {
                        let problem = format!("{name:?} is here a second time; this line counts");
                        skipped.push(Skipped { line: at + 1, problem });
                    }
                }
                Err(problem) => skipped.push(Skipped { line: at + 1, problem }),
            }
        }
        (users, skipped)
    }

    /// Whether this is the agent's secret. Takes tens of milliseconds, whether there is such an
    /// agent or not: not to be called where others wait.
    pub fn check(&self, name: &str, secret: &str) -> bool {
        let hash = self.hashes.get(name);
        let matches = bcrypt::verify(secret, hash.map_or(NOBODY, String::as_str)).unwrap_or(false);
        hash.is_some() && matches
    }

    /// Whether there is an agent of this name.
    pub fn has(&self, name: &str) -> bool {
        self.hashes.contains_key(name)
    }

    /// How many agents there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({:?})", self.hashes.keys().collect::<Vec<_>>())
    }
}

fn entry_of(line: &str) -> Result<(&str, &str), String> {
    let (name, hash) = line.split_once(':').ok_or("not name:hash")?;
    if !is_label(name) {
        return Err(format!("{name:?} is no agent's name: use 1 to 63 of a-z, 0-9 and '-'"));
    }
    if !is_hash(hash) {
        return Err(format!("{name:?} has no bcrypt hash, such as $2a$10$... of 60 characters"));
    }
    Ok((name, hash))
}

fn is_hash(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 60
        && bytes.starts_with(b"$2")
        && b"abxy".contains(&bytes[2])
        && bytes[3] == b'$'
        && bytes[4..6].iter().all(u8::is_ascii_digit)
        && bytes[6] == b'$'
}

/// An agent's own name and secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub name: String,
    /// Its secret.
    pub secret: String,
}

/// A file that holds no name and secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file of --creds must begin with a line name:secret")]
pub struct BadLogin;

impl Login {
    /// Reads the first line of the file; only the first colon in it parts name from secret, and
    /// spaces count.
    pub fn parse(text: &str) -> Result<Self, BadLogin> {
        let line = text.lines().next().ok_or(BadLogin)?;
        let (name, secret) = line.split_once(':').ok_or(BadLogin)?;
        Ok(Self { name: name.to_owned(), secret: secret.to_owned() })
    }

    /// What `AuthRequest.credentials` holds.
    pub fn credentials(&self) -> BTreeMap<String, String> {
        let pair = |key: &str, value: &String| (key.to_owned(), value.clone());
        BTreeMap::from([
            pair(super::CLIENT_ID, &self.name),
            pair(super::CLIENT_SECRET, &self.secret),
        ])
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({:?}, ..)", self.name)
    }
}

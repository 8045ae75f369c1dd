//! Patterns in Argo CD's settings: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`.

/// Whether the whole text matches the pattern. A pattern that is no pattern matches only itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let alternatives = spread(pattern);
    alternatives.iter().any(|p| {
        let (p, t): (Vec<char>, Vec<char>) = (p.chars().collect(), text.chars().collect());
        walk(&p, &t)
    })
}

/// A pattern without braces for each way through them. Bounded: a pattern is written by a person.
fn spread(pattern: &str) -> Vec<String> {
    const MOST: usize = 256;
    let mut done = vec![];
    let mut open = vec![pattern.to_owned()];
    while let Some(next) = open.pop() {
        let brace = next.find('{').and_then(|at| Some((at, at + next[at..].find('}')?)));
        match brace {
            Some((from, to)) if open.len() + done.len() < MOST => {
                let (head, tail) = (&next[..from], &next[to + 1..]);
                open.extend(next[from + 1..to].split(',').map(|way| format!("{head}{way}{tail}")));
            }
            _ => done.push(next),
        }
    }
    done
}

/// Backtracks to the last star only, so its time is bounded by pattern times text.
fn walk(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if let Some(next) = pattern.get(p).and_then(|_| one(pattern, p, text[t])) {
            (p, t) = (next, t + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, t) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The place after what matches this one character, if it does.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern[at] {
        '?' => Some(at + 1),
        '[' => class(pattern, at, c),
        other => (other == c).then_some(at + 1),
    }
}

fn class(pattern: &[char], at: usize, c: char) -> Option<usize> {
    let Some(end) = pattern[at + 1..].iter().skip(1).position(|c| *c == ']').map(|n| at + 2 + n)
    else {
        return (c == '[').then_some(at + 1);
    };
    let negated = matches!(pattern[at + 1], '!' | '^');
    let set = &pattern[at + 1 + usize::from(negated)..end];
    let mut hit = false;
    let mut i = 0;
    while i < set.len() {
        if i + 2 < set.len() && set[i + 1] == '-' {
            hit |= (set[i]..=set[i + 2]).contains(&c);
            i += 3;
        } else {
            hit |= set[i] == c;
            i += 1;
        }
    }
    (hit != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_people_expect() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "any", true),
            ("agent-*", "agent-1", true),
            ("agent-*", "my-agent-1", false),
            ("*-prod-*", "eu-prod-1", true),
            ("agent-?", "agent-12", false),
            ("agent-[0-9]", "agent-7", true),
            ("agent-[!0-9]", "agent-7", false),
            ("{eu,us}-*", "us-1", true),
            ("{eu,us}-*", "ap-1", false),
            ("a[", "a[", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_little() {
        let pattern = "*a".repeat(200);
        let braces = "{a,b}".repeat(40);
        assert!(!matches(&pattern, &"a".repeat(150)));
        assert!(!matches(&braces, "x"));
    }
}

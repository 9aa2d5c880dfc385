//! URLs without what must stay secret.

use reqwest::Url;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Parameters with names that contain one of these are hidden: the words that the catalogue refuses
/// (`_SECRET_WORDS` of `python/swathe/catalog/store_settings.py`) are not printed either.
const SECRET_WORDS: [&str; 11] = [
    "secret",
    "token",
    "passw",
    "pwd",
    "key",
    "credential",
    "signature",
    "auth",
    "bearer",
    "cookie",
    "x-amz-",
];
/// Other names of secrets.
const SECRET_NAMES: [&str; 4] = ["pass", "sig", "sas", "jwt"];
/// Shorter secrets are not searched for in texts: they would match everywhere.
const SECRET_BYTES: usize = 4;

/// A URL as users may see it: without user and password, and with "..." for the values of
/// parameters that look secret.
pub(crate) fn redact_url(url: &str) -> String {
    let Ok(mut visible_url) = Url::parse(url) else {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        return format!("{scheme}://...");
    };
    // These fail for URLs without a host, which have no user either.
    let _ = visible_url.set_username("");
    let _ = visible_url.set_password(None);
    visible_url.set_fragment(None);
    if parameter_secrets(&visible_url).next().is_some() {
        let pairs: Vec<(String, String)> = visible_url
            .query_pairs()
            .map(|(name, value)| {
                let value = if is_secret(&name) { "...".into() } else { value };
                (name.into_owned(), value.into_owned())
            })
            .collect();
        visible_url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    visible_url.into()
}

/// The parts that [`redact_url`] leaves out, as they stand in the URL and decoded.
pub(super) fn secrets(url: &Url) -> Vec<String> {
    let user = [Some(url.username()), url.password()].into_iter().flatten();
    let mut secrets: Vec<String> = user.map(str::to_string).chain(parameter_secrets(url)).collect();
    let query = url.query().unwrap_or_default().split('&');
    secrets.extend(query.filter_map(|pair| Some(pair.split_once('=')?.1.to_string())).filter(
        |value| {
            let text = decode(&value.replace('+', " "));
            parameter_secrets(url).any(|secret| secret == text)
        },
    ));
    secrets.extend(user_secrets(url));
    secrets.retain(|secret| secret.len() >= SECRET_BYTES);
    // The longest first: one may be part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.dedup();
    secrets
}

/// Whether [`redact_url`] leaves something out.
pub(super) fn hides(url: &Url) -> bool {
    !url.username().is_empty()
        || url.password().is_some()
        || parameter_secrets(url).next().is_some()
}

/// A few characters that distinguish URLs with equal redacted forms; empty if nothing is hidden.
/// Too few to guess a secret from.
pub(super) fn secret_mark(url: &Url) -> String {
    if parameter_secrets(url).next().is_none() {
        return String::new();
    }
    let mut hasher = DefaultHasher::new();
    url.query().hash(&mut hasher);
    format!(" {:08x}", hasher.finish() as u32)
}

/// Percent-encode all but ASCII letters, digits and the bytes `plain_bytes`.
pub fn percent_encode(text: &str, plain_bytes: &[u8]) -> String {
    let mut output = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain_bytes.contains(&byte) {
            output.push(char::from(byte));
        } else {
            output.push_str(&format!("%{byte:02X}"));
        }
    }
    output
}

/// Undo percent-encoding.
pub fn percent_decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail
            .get(..2)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

fn decode(text: &str) -> String {
    String::from_utf8_lossy(&percent_decode(text)).into_owned()
}

fn user_secrets(url: &Url) -> impl Iterator<Item = String> {
    [Some(url.username()), url.password()].into_iter().flatten().map(decode)
}

/// The decoded values of parameters that look secret.
fn parameter_secrets(url: &Url) -> impl Iterator<Item = String> {
    url.query_pairs().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.into_owned())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&&*name) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (url, expected) in [
            ("http://host/a.fits", "http://host/a.fits"),
            ("https://me:pass@host:81/a?b=c&d", "https://host:81/a?b=c&d"),
            ("http://host/a?X-Amz-Date=1&id=2", "http://host/a?X-Amz-Date=...&id=2"),
            ("http://host/a?%74oken=abc#part", "http://host/a?token=..."),
            ("http://host/a?sig=abc&ApiKey=d&se=e", "http://host/a?sig=...&ApiKey=...&se=e"),
            ("http://host/a?pwd=b&passwd=c&jwt=d", "http://host/a?pwd=...&passwd=...&jwt=..."),
            ("http://host/a?SAS=b&pass=c&bypass=d", "http://host/a?SAS=...&pass=...&bypass=d"),
            ("ftp://me:pass@host/a", "ftp://host/a"),
            ("http://me:pa/ss@host/a", "http://..."),
        ] {
            assert_eq!(redact_url(url), expected);
        }
    }

    #[test]
    fn secrets_are_known_as_they_stand_and_decoded() {
        let url = Url::parse("http://user:p%40ssword@host/a?token=x%2Fy+z&id=open").unwrap();
        let all = secrets(&url);
        for secret in ["user", "p%40ssword", "p@ssword", "x%2Fy+z", "x/y z"] {
            assert!(all.iter().any(|all| all == secret), "{secret} not in {all:?}");
        }
        assert!(!all.contains(&"open".to_string()));
    }

    #[test]
    fn a_user_a_password_and_secret_parameters_are_hidden() {
        for (url, is_hidden) in [
            ("http://host/a?id=1", false),
            ("http://host/a?token=1", true),
            ("http://user@host/a", true),
            ("http://:word@host/a", true),
        ] {
            assert_eq!(hides(&Url::parse(url).unwrap()), is_hidden, "{url}");
        }
    }

    #[test]
    fn urls_shown_alike_have_different_marks() {
        let mark = |url| secret_mark(&Url::parse(url).unwrap());
        assert_eq!(mark("http://host/a?id=1"), "");
        assert_ne!(mark("http://host/a?key=1"), mark("http://host/a?key=2"));
    }
}

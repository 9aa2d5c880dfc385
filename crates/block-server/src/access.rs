//! Who may read, and who may write: by tokens.

use hyper::header::HeaderMap;
use swathe_net::server::has_token;

/// The tokens of a server. Without any, everybody may do everything. They are never shown.
#[derive(Clone, Default)]
pub struct Tokens {
    /// For those who read and write.
    pub write: Option<String>,
    /// For those who only read.
    pub read: Option<String>,
}

/// What a client may do, from nothing to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Nothing,
    Read,
    Write,
}

impl Tokens {
    pub(crate) fn scope(&self, headers: &HeaderMap) -> Scope {
        let has =
            |token: &Option<String>| token.as_ref().is_some_and(|token| has_token(headers, token));
        // Both are compared, whatever the first says.
        match (has(&self.write), has(&self.read)) {
            (true, _) => Scope::Write,
            _ if self.is_open() => Scope::Write,
            (false, true) => Scope::Read,
            (false, false) => Scope::Nothing,
        }
    }

    /// Whether nobody needs a token.
    pub(crate) fn is_open(&self) -> bool {
        self.write.is_none() && self.read.is_none()
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [self.write.as_ref().map(|_| "write"), self.read.as_ref().map(|_| "read")];
        formatter.debug_list().entries(names.iter().flatten()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{AUTHORIZATION, HeaderValue};

    #[test]
    fn tokens_have_scopes() {
        let tokens = |write: Option<&str>, read: Option<&str>| Tokens {
            write: write.map(str::to_string),
            read: read.map(str::to_string),
        };
        let both = tokens(Some("secret-w"), Some("secret-r"));
        let read_only = tokens(None, Some("secret-r"));
        for (tokens, value, scope) in [
            (&Tokens::default(), None, Scope::Write),
            (&both, None, Scope::Nothing),
            (&both, Some("secret-w"), Scope::Write),
            (&both, Some("secret-r"), Scope::Read),
            (&both, Some("secret-"), Scope::Nothing),
            (&read_only, None, Scope::Nothing),
            (&read_only, Some("secret-r"), Scope::Read),
        ] {
            let value = value.map(|text| HeaderValue::from_str(&format!("Bearer {text}")).unwrap());
            let headers = HeaderMap::from_iter(value.map(|value| (AUTHORIZATION, value)));
            assert_eq!(tokens.scope(&headers), scope);
        }
        assert!(!format!("{both:?}").contains("secret"));
    }
}

//! The sources of bearer tokens.

/// The bearer token: `$BEARER_TOKEN`, else from the set file, from `$BEARER_TOKEN_FILE`, or from
/// `bt_u<uid>` in `$XDG_RUNTIME_DIR` or `/tmp` (WLCG Bearer Token Discovery 1.0).
pub(crate) fn bearer(file: Option<String>) -> Result<Option<String>, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(file) = file {
        return read_token(&file).map(Some);
    }
    if let Some(token) = set("BEARER_TOKEN") {
        return Ok(Some(token.trim().to_string()));
    }
    if let Some(file) = set("BEARER_TOKEN_FILE") {
        return read_token(&file).map(Some);
    }
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata("/proc/self").map(|stat| stat.uid()).unwrap_or_default();
    let folders = [set("XDG_RUNTIME_DIR"), Some("/tmp".to_string())];
    let mut files = folders.into_iter().flatten().map(|folder| format!("{folder}/bt_u{uid}"));
    files.find(|file| std::path::Path::new(file).exists()).map(|file| read_token(&file)).transpose()
}

fn read_token(file: &str) -> Result<String, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("the token file {file}: {error}"))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("the token file {file} holds no token"));
    }
    Ok(token.to_string())
}

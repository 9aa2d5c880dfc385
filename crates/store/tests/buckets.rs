//! Buckets of Google and Azure. One test: the settings are the environment's, which a process has
//! once.

mod server;

use server::{Server, good, reply};
use swathe_store::open;
use swathe_store_api::StoreError;

fn set(name: &str, value: &str) {
    // SAFETY: no other thread of this process reads or writes the environment now.
    unsafe { std::env::set_var(name, value) }
}

#[test]
fn what_no_emulator_does() {
    for (name, _) in std::env::vars() {
        if ["GOOGLE_", "GCE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix)) {
            // SAFETY: as in `set`.
            unsafe { std::env::remove_var(name) }
        }
    }
    let data: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    let content = data.clone();
    let server = Server::start(move |request, _| match request.target.split('?').next() {
        Some("/frames/a%2Bb.fits") => good(request, &content, "ETag: \"0x8D\""),
        // As Google does with what was stored with Content-Encoding: gzip.
        Some("/frames/a.fits.gz") => match request.header("accept-encoding") {
            Some("gzip") => good(request, &content, "ETag: \"one\"\nContent-Encoding: gzip"),
            _ => reply("200 OK\nTransfer-Encoding: chunked", b""),
        },
        Some("/frames/private") => reply(
            "409 Conflict\nx-ms-error-code: PublicAccessNotPermitted\nContent-Type: application/xml",
            b"<Error><Message>Public access is not permitted on this storage account.\n\
              RequestId:1</Message></Error>",
        ),
        Some("/frames/denied") => reply(
            "403 Forbidden",
            b"<Error><Message>Access denied.</Message><Details>Anonymous caller may not.\
              </Details></Error>",
        ),
        _ => reply("404 Not Found", b"<Error><Message>None such.\nTime:1</Message></Error>"),
    });
    let home = tempfile::tempdir().unwrap();
    set("HOME", home.path().to_str().unwrap());
    set("NO_GCE_CHECK", "true");
    set("GOOGLE_BASE_URL", server.url("").trim_end_matches('/'));
    set("AZURE_STORAGE_ENDPOINT", server.url("").trim_end_matches('/'));
    set("AZURE_STORAGE_ACCOUNT_NAME", "survey");
    let error = |url: &str| open(url).map(|source| source.len()).unwrap_err();

    for scheme in ["gs", "az"] {
        let url = format!("{scheme}://frames/a+b.fits");
        let source = open(&url).unwrap();
        assert_eq!(source.url(), url);
        assert_eq!((source.len(), source.version().tag.as_str()), (100_000, "\"0x8D\""));
        let mut bytes = [0; 9];
        source.read_exact_at(90_000, &mut bytes).unwrap();
        assert_eq!(bytes, data[90_000..90_009]);
        let request = server.requests().pop().unwrap();
        assert_eq!(request.header("if-match"), Some("\"0x8D\""));
        assert_eq!(request.header("authorization"), None);
        let version = (scheme == "az").then_some("2023-11-03");
        assert_eq!(request.header("x-ms-version"), version);
        let missing = error(&format!("{scheme}://frames/none"));
        assert!(matches!(missing, StoreError::NotFound { .. }));
        let reason = "frames/none: not found: None such; asked anonymously: no credentials in ";
        assert!(missing.to_string().contains(reason), "{missing}");
    }

    assert_eq!(open("gs://frames/a.fits.gz").unwrap().len(), 100_000);
    let refusal = error("gs://frames/denied").to_string();
    assert!(refusal.contains("denied. Anonymous caller may not; asked anonymously: "), "{refusal}");
    let private = error("az://frames/private");
    assert!(matches!(private, StoreError::Forbidden { .. }));
    let reason = "409 Conflict, Public access is not permitted on this storage account; asked anon";
    assert!(private.to_string().contains(reason), "{private}");

    // Kept tokens are those of the credentials now.
    set("GOOGLE_BEARER_TOKEN", "first-token");
    open("gs://frames/a+b.fits").unwrap();
    set("GOOGLE_BEARER_TOKEN", "second-token");
    open("gs://frames/a+b.fits").unwrap();
    let requests = server.requests();
    let requests =
        requests[requests.len() - 2..].iter().map(|request| request.header("authorization"));
    assert_eq!(
        requests.collect::<Vec<_>>(),
        [Some("Bearer first-token"), Some("Bearer second-token")]
    );
}

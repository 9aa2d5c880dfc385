//! S3 sources. One test: the settings are the environment's, which a process has once.

mod server;

use server::{Server, good, reply};
use std::collections::BTreeMap;
use swathe_plan::Costs;
use swathe_store::open;

use swathe_store_api::StoreError;

fn set(name: &str, value: &str) {
    // SAFETY: no other thread of this process reads or writes the environment now.
    unsafe { std::env::set_var(name, value) }
}

#[test]
fn objects_are_read_anonymously_and_with_the_keys_of_a_profile() {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        // SAFETY: as in `set`.
        unsafe { std::env::remove_var(name) }
    }
    let data: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    let (content, refusal) = (data.clone(), "<Error><Message>SECRETKEY is wrong</Message></Error>");
    let server = Server::start(move |request, number| match request.target.split('?').next() {
        Some("/bucket/a%20b/c.fits") => good(request, &content, "ETag: \"one\""),
        Some("/bucket/changes") => {
            good(request, &content, if number % 2 == 0 { "ETag: \"one\"" } else { "ETag: \"two\"" })
        }
        Some("/bucket/denied") => reply("403 Forbidden", refusal.as_bytes()),
        Some("/elsewhere/a") => reply("301 Moved\nx-amz-bucket-region: eu-west-1", b""),
        _ => reply("404 Not Found", b""),
    });
    let home = tempfile::tempdir().unwrap();
    set("HOME", home.path().to_str().unwrap());
    set("AWS_ENDPOINT_URL", server.url("").trim_end_matches('/'));

    let source = open("s3://bucket/a b/c.fits").unwrap();
    assert_eq!(source.url(), "s3://bucket/a b/c.fits");
    assert_eq!(source.key(), format!("s3://127.0.0.1:{}/bucket/a b/c.fits", server.port));
    assert_eq!((source.len(), source.version().tag.as_str()), (100_000, "\"one\""));
    let ranges: Vec<_> = (0..20).map(|i| 80_000 + i * 100..80_000 + i * 100 + 50).collect();
    for (range, bytes) in ranges.iter().zip(source.fetch(ranges.clone(), 4).map(Result::unwrap)) {
        assert_eq!(bytes, data[range.start as usize..range.end as usize]);
    }
    let key = format!("s3://127.0.0.1:{}/bucket", server.port);
    let costs = BTreeMap::from([(key.clone(), Costs::remote())]);
    let (store, _) =
        swathe_store::stores(Vec::new()).with_costs(costs).locate("s3://bucket/a b/c.fits");
    let (settings, store_key) = (store.settings(), store.key());
    assert_eq!(
        (settings.root.as_str(), store_key, settings.is_measured),
        ("s3://bucket", key, true)
    );
    for request in server.requests() {
        assert_eq!(request.target, "/bucket/a%20b/c.fits", "anonymous requests hold no query");
        assert_eq!(request.header("authorization"), None);
    }
    assert!(server.requests()[1..].iter().all(|get| get.header("if-match") == Some("\"one\"")));

    let error = |url: &str| open(url).map(|source| source.len()).unwrap_err();
    assert!(matches!(error("s3://bucket/absent"), StoreError::NotFound { .. }));
    for url in ["s3://bucket", "s3:///key", "s3://bucket/", "s3://bucket/a//b", "s3://a:b@c/d"] {
        assert!(matches!(error(url), StoreError::Unsupported { .. }), "{url}");
    }
    assert!(error("s3://elsewhere/a").to_string().contains("set AWS_REGION"));

    let requests = server.requests().len();
    if requests % 2 == 1 {
        error("s3://bucket/absent");
    }
    let changing = open("s3://bucket/changes").unwrap();
    let change = changing.read_exact_at(90_000, &mut [0; 9]).unwrap_err();
    assert!(matches!(change, StoreError::Changed { .. }), "{change}");

    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let keys = "[default]\naws_access_key_id = KEYID\naws_secret_access_key = SECRETKEY\n";
    std::fs::write(home.path().join(".aws/credentials"), keys).unwrap();
    let source = open("s3://bucket/a b/c.fits").unwrap();
    source.read_exact_at(90_007, &mut [0; 9]).unwrap();
    for request in &server.requests()[server.requests().len() - 2..] {
        assert!(request.target.contains("X-Amz-Credential=KEYID"), "{}", request.target);
        assert!(request.target.contains("X-Amz-Signature="));
    }
    let refusal = error("s3://bucket/denied");
    assert!(matches!(refusal, StoreError::Forbidden { .. }));
    assert!(
        refusal
            .to_string()
            .ends_with("403 Forbidden, ... is wrong; asked with the keys of a profile"),
        "{refusal}"
    );

    set("AWS_PROFILE", "absent");
    assert!(error("s3://bucket/a").to_string().contains("no access keys of profile absent"));
    set("AWS_SKIP_SIGNATURE", "true");
    open("s3://bucket/a b/c.fits").unwrap();
    assert!(!server.requests().last().unwrap().target.contains('?'));
}

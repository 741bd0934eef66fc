//! Tells the engine how far it is optimized, which only a build script knows.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "cargo asks and answers this way")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=PERHOP_OPT_LEVEL={}", std::env::var("OPT_LEVEL").unwrap_or_default());
}

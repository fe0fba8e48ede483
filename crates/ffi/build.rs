//! Sets the shared library's soname. It contains the minor version, which before 1.0.0 may break programs.

fn main() {
    let [major, minor] = ["CARGO_PKG_VERSION_MAJOR", "CARGO_PKG_VERSION_MINOR"]
        .map(|name| std::env::var(name).expect("Cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libwollemi.so.{major}.{minor}");
    }
}

//! `#[derive(Key)]` for the keys of Wollemi's typed maps.
//!
//! Use it through the crate `wollemi` with its feature `derive`, which explains the encoding at its trait `Key`.
//!
//! A struct is written as a tuple of its fields is: each field but the last as a part that says where it ends, the last
//! as it is. An enum begins with one byte, its variant's number from zero; the variant's fields follow as a struct's
//! do. So the bytes are in the order that `#[derive(Ord)]` gives the type.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

/// Derives `wollemi::Key`. Every field's type must be a `Key`; type parameters get that bound.
///
/// # Errors
///
/// The compiler refuses a union, an enum of no or of more than 256 variants, and variants with discriminants of their
/// own, by which `Ord` would order them otherwise.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::key(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

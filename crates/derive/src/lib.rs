//! `#[derive(Key)]` for the keys of Wollemi's typed maps.
//!
//! Use it through the crate `wollemi` with its feature `derive`; that crate's trait `Key` explains the encoding.
//!
//! A struct is encoded like a tuple of its fields: each field but the last as a part that marks its own end, the last
//! directly. An enum begins with one byte, its variant's number from zero; the variant's fields follow as in a
//! struct. So the bytes are ordered as by `#[derive(Ord)]`.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;

/// Derives `wollemi::Key`. Every field's type must be a `Key`; type parameters get that bound.
///
/// # Errors
///
/// The compiler refuses a union, an enum of no or of more than 256 variants, and variants with explicit
/// discriminants, by which `Ord` would order them differently.
#[proc_macro_derive(Key)]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::key(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

//! The derived implementation.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, GenericParam, parse_quote};

/// One struct, or one variant of an enum.
struct Shape<'i> {
    /// `Self`, or `Self::Variant`.
    constructor: TokenStream,
    /// The byte with which an enum's variant begins.
    number: Option<u8>,
    fields: &'i Fields,
}

/// Derives the implementation of `wollemi::Key`.
pub fn key(input: &DeriveInput) -> Result<TokenStream, Error> {
    let shapes = shapes(input)?;
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::wollemi::Key));
        }
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();

    let write = shapes.iter().map(|shape| shape.write(false));
    let write_part = shapes.iter().map(|shape| shape.write(true));
    let (read, read_part) = match &input.data {
        Data::Enum(_) => (choose(&shapes, false), choose(&shapes, true)),
        _ => (shapes[0].read(false), shapes[0].read(true)),
    };
    Ok(quote! {
        #[automatically_derived]
        impl #parameters ::wollemi::Key for #name #arguments #conditions {
            fn write(&self, into: &mut ::std::vec::Vec<u8>) {
                match self { #(#write)* }
            }
            fn read(bytes: &[u8]) -> ::std::option::Option<Self> {
                #read
            }
            fn write_part(&self, into: &mut ::std::vec::Vec<u8>) {
                match self { #(#write_part)* }
            }
            fn read_part(bytes: &[u8]) -> ::std::option::Option<(Self, &[u8])> {
                #read_part
            }
        }
    })
}

fn shapes(input: &DeriveInput) -> Result<Vec<Shape<'_>>, Error> {
    let data = match &input.data {
        Data::Struct(data) => {
            return Ok(vec![Shape {
                constructor: quote!(Self),
                number: None,
                fields: &data.fields,
            }]);
        }
        Data::Enum(data) => data,
        Data::Union(_) => return Err(Error::new_spanned(&input.ident, "a union cannot be a key")),
    };
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "an enum without variants cannot be a key",
        ));
    }
    let mut shapes = Vec::with_capacity(data.variants.len());
    for (i, variant) in data.variants.iter().enumerate() {
        if let Some((_, discriminant)) = &variant.discriminant {
            let why = "a key's variants are numbered in order: they cannot have explicit discriminants";
            return Err(Error::new_spanned(discriminant, why));
        }
        let number = u8::try_from(i)
            .map_err(|_| Error::new_spanned(variant, "an enum used as a key has at most 256 variants"))?;
        let ident = &variant.ident;
        shapes.push(Shape {
            constructor: quote!(Self::#ident),
            number: Some(number),
            fields: &variant.fields,
        });
    }
    Ok(shapes)
}

/// Reads the variant whose number comes first.
fn choose(shapes: &[Shape<'_>], as_part: bool) -> TokenStream {
    let numbers = shapes.iter().map(|shape| shape.number);
    let read = shapes.iter().map(|shape| shape.read(as_part));
    quote! {
        let (&number, bytes) = bytes.split_first()?;
        match number {
            #(#numbers => { #read })*
            _ => ::std::option::Option::None,
        }
    }
}

impl Shape<'_> {
    /// Names for the values of the fields.
    fn names(&self) -> Vec<Ident> {
        (0..self.fields.len())
            .map(|i| format_ident!("field_{i}", span = Span::mixed_site()))
            .collect()
    }

    /// The struct or the variant with these values, as a pattern or an expression.
    fn with(&self, names: &[Ident]) -> TokenStream {
        let constructor = &self.constructor;
        match self.fields {
            Fields::Named(fields) => {
                let fields = fields.named.iter().map(|field| &field.ident);
                quote!(#constructor { #(#fields: #names),* })
            }
            Fields::Unnamed(_) => quote!(#constructor(#(#names),*)),
            Fields::Unit => constructor.clone(),
        }
    }

    /// An arm of the `match` that writes a key, its last field directly or as a part.
    fn write(&self, as_part: bool) -> TokenStream {
        let names = self.names();
        let pattern = self.with(&names);
        let number = self.number.map(|number| quote!(into.push(#number);));
        let (parts, last) = split(&names, as_part);
        quote! {
            #pattern => {
                #number
                #(::wollemi::Key::write_part(#parts, into);)*
                #(::wollemi::Key::write(#last, into);)*
            }
        }
    }

    /// Reads a key from `bytes`, behind its variant's number, its last field directly or as a part.
    fn read(&self, as_part: bool) -> TokenStream {
        let names = self.names();
        let made = self.with(&names);
        let (parts, last) = split(&names, as_part);
        let done = match (as_part, last.first()) {
            (true, _) => quote!(::std::option::Option::Some((#made, bytes))),
            (false, Some(_)) => quote!(::std::option::Option::Some(#made)),
            (false, None) => quote!(bytes.is_empty().then_some(#made)),
        };
        quote! {
            #(let (#parts, bytes) = ::wollemi::Key::read_part(bytes)?;)*
            #(let #last = ::wollemi::Key::read(bytes)?;)*
            #done
        }
    }
}

/// Returns the fields that are written as parts, and the last one if it is written directly.
fn split(names: &[Ident], as_part: bool) -> (&[Ident], &[Ident]) {
    let parts = if as_part {
        names.len()
    } else {
        names.len().saturating_sub(1)
    };
    names.split_at(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler's error for this type.
    fn refused(input: DeriveInput) -> String {
        key(&input).expect_err("it cannot be a key").to_string()
    }

    /// Types whose bytes would be out of order, or that have none, are refused.
    #[test]
    fn what_cannot_be_a_key_is_refused() {
        assert!(refused(parse_quote!(union U { a: u8 })).contains("union"));
        assert!(
            refused(parse_quote!(
                enum Never {}
            ))
            .contains("without variants")
        );
        assert!(
            refused(parse_quote!(
                enum Turned {
                    A = 2,
                    B = 1,
                }
            ))
            .contains("discriminants")
        );
        let variants = (0..257).map(|i| format_ident!("V{i}"));
        assert!(refused(parse_quote!(enum Many { #(#variants),* })).contains("256"));
    }
}

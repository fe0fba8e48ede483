//! The native methods, grouped by object.

mod database;
mod expiring;
mod maps;
mod snapshots;
mod transactions;

/// Defines native methods of `io.github.wollemi.Handle`. The body is a fallible closure over the environment; its
/// error, or its panic, becomes an exception.
macro_rules! native {
    ($($name:literal => fn $rust:ident<$l:lifetime>($env:ident $(, $argument:ident: $type:ty)* $(,)?) -> $result:ty $body:block)*) => {$(
        // J2: the name and the types are those declared in `Handle.java`.
        #[unsafe(export_name = concat!("Java_io_github_wollemi_Handle_", $name))]
        extern "system" fn $rust<$l>(
            mut unowned: jni::EnvUnowned<$l>,
            // The object, or the class if the method is static.
            _receiver: jni::objects::JObject<$l>
            $(, $argument: $type)*
        ) -> $result {
            let outcome = unowned.with_env(|$env| -> Result<$result, $crate::failure::Failure> { $body });
            outcome.resolve::<$crate::failure::Throw>()
        }
    )*};
}

use native;

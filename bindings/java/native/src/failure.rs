//! Failures, and their conversion to Java exceptions.

use heap::MayBeFull;
use jni::errors::ErrorPolicy;
use jni::objects::{JByteArray, JThrowable};
use jni::{Env, JValue, jni_sig, jni_str};
use std::any::Any;
use std::io::ErrorKind;
use wollemi::{Error, FilesError, IndexError, PoolErrorKind};

/// Why a call failed.
pub enum Failure {
    /// The object of the call is closed.
    Closed(&'static str),
    /// The database's error.
    Database(Error),
    /// An argument is invalid.
    Argument(String),
    /// A JNI call failed; if Java has thrown an exception, it is pending.
    Jni(jni::errors::Error),
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Failure {
        Failure::Jni(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Database(error)
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Failure {
        Failure::Database(error.into())
    }
}

/// Returns the name in `io.github.wollemi.WollemiException.Kind`, or a name that `Failure.java` maps to a standard
/// exception.
fn kind(error: &Error) -> &'static str {
    if error.is_full() {
        return "FULL";
    }
    match error {
        // Like a pool that was open when the machine stopped.
        Error::Files(FilesError::NeedsRebuild(_)) => "POOL",
        // The log refuses writes at its limit, on a full disk, or after it has failed.
        Error::Index(IndexError::Refused(_)) | Error::Files(_) => match error.io_kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "FULL",
            ErrorKind::InvalidData => "DAMAGED",
            ErrorKind::NotFound => "MISSING",
            ErrorKind::InvalidInput => "argument",
            _ => "OTHER",
        },
        Error::Index(IndexError::KeyTooLong(_) | IndexError::ValueTooLong(_)) => "argument",
        Error::MapName(_) | Error::OtherDatabase(_) => "argument",
        Error::Index(IndexError::Unordered) => "unsupported",
        Error::Index(IndexError::ReadOnly) => "READ_ONLY",
        Error::Index(IndexError::Unfinished) | Error::Unfinished(_) => "UNFINISHED",
        Error::Index(IndexError::NotDurable(_)) => "NOT_DURABLE",
        Error::Index(IndexError::Heap(wollemi::HeapError::Damaged { .. })) => "DAMAGED",
        Error::Heap(wollemi::HeapError::Damaged { .. }) => "DAMAGED",
        Error::Pool(error) => match error.kind {
            PoolErrorKind::Busy { .. } => "IN_USE",
            PoolErrorKind::Missing => "MISSING",
            PoolErrorKind::Full { .. } | PoolErrorKind::NoSpace { .. } => "FULL",
            PoolErrorKind::Damaged { .. } | PoolErrorKind::Truncated { .. } => "DAMAGED",
            _ => "POOL",
        },
        Error::InUse | Error::MapInUse(_) => "IN_USE",
        Error::OtherIndex { .. } | Error::OtherKind { .. } | Error::LeftOut { .. } => "OTHER_INDEX",
        Error::Conflict { .. } => "conflict",
        Error::SnapshotOutgrown(_) => "SNAPSHOT_OUTGROWN",
        Error::NotExpiring(_) => "NOT_EXPIRING",
        _ => "OTHER",
    }
}

/// Throws the exception of a failure.
pub struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _: &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        match failure {
            Failure::Closed(what) => throw(env, "closed", what, None),
            Failure::Argument(what) => throw(env, "argument", &what, None),
            Failure::Database(Error::Conflict { map, key }) => {
                let message = Error::Conflict {
                    map: map.clone(),
                    key: key.clone(),
                }
                .to_string();
                throw(env, "conflict", &message, Some((&map, &key)))
            }
            Failure::Database(error) => throw(env, kind(&error), &error.to_string(), None),
            Failure::Jni(_) if env.exception_check() => Ok(()),
            Failure::Jni(error) => throw(env, "OTHER", &error.to_string(), None),
        }?;
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        _: &mut (),
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let said = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        let said = said.unwrap_or_default();
        throw(
            env,
            "PANIC",
            &format!("a bug in Wollemi, please report it: {said}"),
            None,
        )?;
        Ok(T::default())
    }
}

/// Calls `Failure.of` for the exception, and throws it. `conflict`: the map's name and the key.
fn throw(
    env: &mut Env,
    kind: &str,
    message: &str,
    conflict: Option<(&str, &[u8])>,
) -> jni::errors::Result<()> {
    if env.exception_check() {
        return Ok(());
    }
    let class = env.find_class(jni_str!("io/github/wollemi/Failure"))?;
    let kind = env.new_string(kind)?;
    let message = env.new_string(message)?;
    let (map, key) = match conflict {
        Some((map, key)) => (env.new_string(map)?, env.byte_array_from_slice(key)?),
        None => (Default::default(), JByteArray::default()),
    };
    let made = env.call_static_method(
        class,
        jni_str!("of"),
        jni_sig!((java.lang.String, java.lang.String, java.lang.String, jbyte[]) -> java.lang.RuntimeException),
        &[JValue::Object(&kind), JValue::Object(&message), JValue::Object(&map), JValue::Object(&key)],
    )?;
    let exception = env.cast_local::<JThrowable>(made.l()?)?;
    match env.throw(exception) {
        // The jni crate reports a thrown exception this way.
        Err(jni::errors::Error::JavaException) => Ok(()),
        other => other,
    }
}

//! Owner, group, mode and access control list of a file, to be copied to another that holds the same data.

use crate::platform::{acl_of, give_acl};
use std::fs::{self, Metadata, Permissions as Mode};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// The owner, the group, the mode and the access control list of a file.
#[derive(Clone, Debug)]
pub struct Permissions {
    owner: u32,
    group: u32,
    mode: u32,
    /// Linux's representation of it, if there is one.
    acl: Option<Vec<u8>>,
}

impl Permissions {
    /// Reads the permissions of a file.
    ///
    /// # Errors
    ///
    /// Errors of the file system.
    pub fn of(path: &Path) -> io::Result<Permissions> {
        let found = fs::metadata(path)?;
        Ok(Permissions {
            owner: found.uid(),
            group: found.gid(),
            mode: found.mode() & 0o7777,
            acl: acl_of(path)?,
        })
    }

    /// The same for a directory, which each of owner, group and others can enter if it can read the file. Users who
    /// have access to the file only by its group or its access control list cannot enter, if it has such a list.
    #[must_use]
    pub fn for_directory(&self) -> Permissions {
        Permissions {
            mode: self.mode & 0o777 | (self.mode & 0o444) >> 2,
            // The list's entries are meant for files; `within_acl` accounts for its loss.
            acl: None,
            ..self.clone()
        }
        .within_acl(self.acl.is_some())
    }

    /// Those for a file in a directory that has these permissions.
    #[must_use]
    pub fn in_directory(&self) -> Permissions {
        Permissions {
            mode: self.mode & 0o666,
            acl: None,
            ..self.clone()
        }
        .within_acl(self.acl.is_some())
    }

    /// Removes the mode's group bits if they came with an access control list: they then bound what the list allows
    /// its users and groups, and do not say what the group alone may do.
    fn within_acl(mut self, has_acl: bool) -> Permissions {
        if has_acl {
            self.mode &= !0o070;
        }
        self
    }

    /// Sets these permissions on a file. Returns those that could not be set, and why; then fewer users can access
    /// it.
    pub fn give_to(&self, path: &Path) -> Vec<(String, io::Error)> {
        let mut refused = Vec::new();
        let mut note =
            |what: String, done: io::Result<()>| refused.extend(done.err().map(|error| (what, error)));
        let has_group = self.take_owner(path, &mut note);
        // Another group must not get what was meant for the first.
        let mode = if has_group { self.mode } else { self.mode & !0o070 };
        // Set afterwards, since a change of the owner may change the mode.
        note(
            format!("mode {:o}", self.mode),
            fs::set_permissions(path, Mode::from_mode(mode)),
        );
        if has_group {
            note(
                "the access control list".into(),
                give_acl(self.acl.as_deref(), path),
            );
        }
        refused
    }

    /// Sets owner and group as far as this process is permitted; returns whether the file has the group now.
    fn take_owner(&self, path: &Path, note: &mut impl FnMut(String, io::Result<()>)) -> bool {
        let is_same = |found: &Metadata| (found.uid(), found.gid()) == (self.owner, self.group);
        if fs::metadata(path).is_ok_and(|found| is_same(&found)) {
            return true;
        }
        let owned = chown(path, Some(self.owner), Some(self.group)).inspect_err(|_| {
            // A file's owner may give it to one of its own groups.
            let _ = chown(path, None, Some(self.group));
        });
        note(format!("owner {} and group {}", self.owner, self.group), owned);
        fs::metadata(path).is_ok_and(|found| found.gid() == self.group)
    }
}

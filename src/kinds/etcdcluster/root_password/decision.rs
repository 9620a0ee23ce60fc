//! Reads root's password from a Secret. Pure.

use k8s_openapi::api::core::v1::Secret;

use super::ROOT;
use crate::kinds::etcdcluster::etcd::Password;
use crate::kinds::etcdcluster::observation::Unreadable;

/// Types of Secrets that may have a password; one without a type is of the second.
const TYPES: [&str; 2] = ["kubernetes.io/basic-auth", "Opaque"];

/// Bytes of a password that bcrypt reads. Older members of etcd drop the rest, younger ones refuse it all.
const LONGEST: usize = 72;

/// The password of root, as it is written: a line break at its end is part of it.
///
/// # Errors
/// Why there is none.
pub fn password(secret: &Secret) -> Result<Password, Unreadable> {
    if secret.type_.as_ref().is_some_and(|kind| !TYPES.contains(&kind.as_str())) {
        return Err(Unreadable::OtherType);
    }
    let part = |key: &str| secret.data.as_ref()?.get(key).map(|value| value.0.as_slice());
    if part("username").is_some_and(|user| user != ROOT.as_bytes()) {
        return Err(Unreadable::OtherUser);
    }
    match part("password").ok_or(Unreadable::NoPassword)? {
        [] => Err(Unreadable::Empty),
        long if long.len() > LONGEST => Err(Unreadable::TooLong),
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Password::new(text.to_owned())),
            Err(_) => Err(Unreadable::NotText),
        },
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn judged(kind: Option<&str>, data: &[(&str, &[u8])]) -> Result<Password, Unreadable> {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        password(&Secret { type_: kind.map(str::to_owned), data: Some(data.collect()), ..Secret::default() })
    }

    #[test]
    fn the_password_is_what_is_written_line_break_and_all() {
        for kind in [None, Some("Opaque"), Some("kubernetes.io/basic-auth")] {
            let found = judged(kind, &[("username", b"root"), ("password", b"a b\n")]);
            assert_eq!(found, Ok(Password::new("a b\n".to_owned())));
        }
        assert_eq!(judged(None, &[("password", &[b'a'; 72])]), Ok(Password::new("a".repeat(72))));
    }

    #[test]
    fn what_is_no_password_of_root_is_distinguished() {
        let found = password(&Secret::default());
        assert_eq!(found, Err(Unreadable::NoPassword));
        for (kind, data, why) in [
            (Some("kubernetes.io/tls"), &[("password", &b"a"[..])][..], Unreadable::OtherType),
            (None, &[("username", b"admin"), ("password", b"a")], Unreadable::OtherUser),
            (None, &[("username", b"root\n"), ("password", b"a")], Unreadable::OtherUser),
            (None, &[("passwort", b"a")], Unreadable::NoPassword),
            (None, &[("password", b"")], Unreadable::Empty),
            (None, &[("password", b"\xff")], Unreadable::NotText),
            (None, &[("password", &[b'a'; 73])], Unreadable::TooLong),
        ] {
            assert_eq!(judged(kind, data), Err(why));
        }
    }
}

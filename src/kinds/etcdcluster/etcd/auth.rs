//! Etcd's service Auth, as far as enabling authentication and setting a password need it.
//!
//! A client that shows a certificate acts as the user that the certificate's common name says, whether or not that user
//! has a password; so none ever has to exist.
//! Never: shows a password. The messages that have one are written without it.

use std::fmt;

use super::client::{Client, Rpc};
use super::error::Error;
use super::header::Header;

/// Whether authentication is on.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct AuthStatus {
    /// Who answered.
    #[prost(message, required, tag = "1")]
    pub header: Header,
    /// Whether it is on.
    #[prost(bool, tag = "2")]
    pub enabled: bool,
    /// Revision of users and roles.
    #[prost(uint64, tag = "3")]
    pub revision: u64,
}

/// An answer without content: the call was done.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Done {
    /// Who answered.
    #[prost(message, required, tag = "1")]
    pub header: Header,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct AuthEnable {}

impl Rpc for AuthEnable {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/AuthEnable";
    const DOING: &'static str = "turn authentication on";
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct AuthStatusRequest {}

impl Rpc for AuthStatusRequest {
    type Answer = AuthStatus;
    const PATH: &'static str = "/etcdserverpb.Auth/AuthStatus";
    const DOING: &'static str = "ask whether authentication is on";
}

/// How a user is added.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct UserOptions {
    /// The user never has a password. Otherwise it has the empty one until it gets another one, or none.
    #[prost(bool, tag = "1")]
    pub no_password: bool,
}

/// A password of a user of etcd; empty: none fits. It is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// That text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
struct Authenticate {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    password: String,
}

impl fmt::Debug for Authenticate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authenticate").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rpc for Authenticate {
    // The token that comes with it is not read.
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/Authenticate";
    const DOING: &'static str = "authenticate by password";
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct UserDelete {
    #[prost(string, tag = "1")]
    name: String,
}

impl Rpc for UserDelete {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/UserDelete";
    const DOING: &'static str = "delete a user";
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
#[prost(skip_debug)]
struct UserChangePassword {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    password: String,
}

impl fmt::Debug for UserChangePassword {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UserChangePassword").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Rpc for UserChangePassword {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/UserChangePassword";
    const DOING: &'static str = "change a password";
}

/// The request to add a user.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UserAdd {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Whether it has a password.
    #[prost(message, required, tag = "3")]
    pub options: UserOptions,
}

impl Rpc for UserAdd {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/UserAdd";
    const DOING: &'static str = "add a user";
}

#[derive(Clone, PartialEq, prost::Message)]
struct UserGrantRole {
    #[prost(string, tag = "1")]
    user: String,
    #[prost(string, tag = "2")]
    role: String,
}

impl Rpc for UserGrantRole {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/UserGrantRole";
    const DOING: &'static str = "give a user a role";
}

#[derive(Clone, PartialEq, prost::Message)]
struct RoleAdd {
    #[prost(string, tag = "1")]
    name: String,
}

impl Rpc for RoleAdd {
    type Answer = Done;
    const PATH: &'static str = "/etcdserverpb.Auth/RoleAdd";
    const DOING: &'static str = "add a role";
}

impl Client {
    /// Whether authentication is on.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn auth_status(&self) -> Result<AuthStatus, Error> {
        self.call(AuthStatusRequest {}, self.limits.read).await
    }

    /// Turns authentication on. There has to be a user root with the role root.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn enable_auth(&self) -> Result<(), Error> {
        self.call(AuthEnable {}, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Adds a user that may have a password. **It has the empty one**, until [`Self::change_password`] gives it
    /// another, or none.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::UserExists`] means already.
    pub async fn add_user_for_a_password(&self, name: &str) -> Result<(), Error> {
        let request = UserAdd { name: name.to_owned(), options: UserOptions { no_password: false } };
        self.call(request, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Deletes a user. Root stays while authentication is on ([`super::Refusal::InvalidAuthManagement`]).
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::UserNotFound`] means already.
    pub async fn delete_user(&self, name: &str) -> Result<(), Error> {
        self.call(UserDelete { name: name.to_owned() }, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Gives a user a password, of 72 bytes at most, that bcrypt reads. With the empty one none fits any more: etcd
    /// makes no hash of it (`EtcdServer.UserChangePassword` of its `etcdserver/v3_server.go`). Tokens that the user has
    /// got by a password end. **Of a user that never has one, nothing changes, and no error says so.**
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn change_password(&self, name: &str, password: &Password) -> Result<(), Error> {
        let request = UserChangePassword { name: name.to_owned(), password: password.0.clone() };
        self.call(request, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Whether that is the password of a user, as a majority has it. Authentication has to be on.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::AuthFailed`] is a no; [`super::Refusal::NoPasswordUser`] that the user never
    /// has one.
    pub async fn authenticate(&self, name: &str, password: &Password) -> Result<(), Error> {
        let request = Authenticate { name: name.to_owned(), password: password.0.clone() };
        self.call(request, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Gives a user a role. That the user has it already is fine.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn grant_role(&self, user: &str, role: &str) -> Result<(), Error> {
        let request = UserGrantRole { user: user.to_owned(), role: role.to_owned() };
        self.call(request, self.limits.change).await.map(|Done { .. }| ())
    }

    /// Adds a role without permissions.
    ///
    /// # Errors
    /// See [`Error`]. [`super::Refusal::RoleExists`] means already.
    pub async fn add_role(&self, name: &str) -> Result<(), Error> {
        self.call(RoleAdd { name: name.to_owned() }, self.limits.change).await.map(|Done { .. }| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_shows_its_password() {
        let password = Password::new("correct horse".to_owned());
        let Password(text) = password.clone();
        let name = "root".to_owned();
        let shown = [
            format!("{password:?}"),
            format!("{:?}", Authenticate { name: name.clone(), password: text.clone() }),
            format!("{:?}", UserChangePassword { name, password: text }),
        ];
        assert_eq!(
            shown,
            ["Password", "Authenticate { name: \"root\", .. }", "UserChangePassword { name: \"root\", .. }"]
        );
    }
}

//! Who asks for something, in the resolved spec of every kind. Pure.

/// Declares what a spec with a field `metadata` says of its object.
macro_rules! identity {
    ($spec:ty) => {
        impl $spec {
            /// The name of the object.
            #[must_use]
            pub fn name(&self) -> &str {
                self.metadata.name.as_deref().unwrap_or_default()
            }

            /// Its namespace.
            #[must_use]
            pub fn namespace(&self) -> &str {
                self.metadata.namespace.as_deref().unwrap_or_default()
            }

            /// Its uid.
            #[must_use]
            pub fn uid(&self) -> &str {
                self.metadata.uid.as_deref().unwrap_or_default()
            }

            /// Whether it is being deleted.
            #[must_use]
            pub const fn is_deleting(&self) -> bool {
                self.metadata.deletion_timestamp.is_some()
            }
        }
    };
}

pub(crate) use identity;

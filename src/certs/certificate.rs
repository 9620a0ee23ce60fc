//! Certificates as values, and bundles of them.
//!
//! Guarantees: a [`Certificate`] has been parsed; a [`Bundle`] made of the same certificates has the same bytes,
//! whatever their order was, because each change of a `caBundle` inside a definition makes the API server drop
//! its watches of that kind.
//! Never: asks the time or holds a private key.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// From when until when a certificate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub not_before: Timestamp,
    /// The last moment.
    pub not_after: Timestamp,
}

/// Who signs with a certificate: its subject and its public key, as they are encoded.
///
/// Two certificates of the same identity verify the same leaves, which is what makes an authority's re-issue
/// harmless in any order of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    subject: Vec<u8>,
    public_key: Vec<u8>,
}

impl Identity {
    /// Both, one after the other. Each says its own length, as all that is encoded in DER does.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        [self.subject.as_slice(), &self.public_key].concat()
    }
}

/// These bytes are not a certificate.
#[derive(Debug, thiserror::Error)]
#[error("failed to read a certificate: {0}")]
pub struct Unreadable(String);

/// A certificate and what was read from it.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    der: CertificateDer<'static>,
    validity: Validity,
    identity: Identity,
    serial: Vec<u8>,
    common_name: Option<String>,
    is_authority: bool,
    /// What an authority may sign for; absent where nothing limits it.
    permitted: Option<Vec<String>>,
    names: BTreeSet<String>,
}

impl Certificate {
    /// Reads one certificate.
    ///
    /// # Errors
    /// When the bytes are not X.509, or its dates cannot be read.
    pub fn read(der: CertificateDer<'static>) -> Result<Self, Unreadable> {
        let (rest, parsed) =
            X509Certificate::from_der(&der).map_err(|error| Unreadable(error.to_string()))?;
        if !rest.is_empty() {
            return Err(Unreadable(format!("{} bytes too many", rest.len())));
        }
        let second = |second| Timestamp::from_second(second).map_err(|error| Unreadable(error.to_string()));
        let validity = Validity {
            not_before: second(parsed.validity().not_before.timestamp())?,
            not_after: second(parsed.validity().not_after.timestamp())?,
        };
        let identity = Identity {
            subject: parsed.subject().as_raw().to_vec(),
            public_key: parsed.public_key().raw.to_vec(),
        };
        let serial = parsed.raw_serial().to_vec();
        let common_name = common_name(&parsed);
        let is_authority = parsed.is_ca();
        let permitted = permitted(&parsed);
        let names = names(&parsed);
        Ok(Self { der, validity, identity, serial, common_name, is_authority, permitted, names })
    }

    /// The certificates in PEM text that can be read; whatever else is in there is passed over.
    #[must_use]
    pub fn read_all(pem: &[u8]) -> Vec<Self> {
        CertificateDer::pem_slice_iter(pem)
            .filter_map(Result::ok)
            .filter_map(|der| Self::read(der).ok())
            .collect()
    }

    /// The encoded certificate.
    #[must_use]
    pub const fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// When it holds.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// Who signs with it.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its serial number, big-endian.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// The first common name of its subject.
    #[must_use]
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// The DNS names, wildcards among them, and IP addresses that it is for.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Whether it may sign others.
    #[must_use]
    pub const fn is_authority(&self) -> bool {
        self.is_authority
    }

    /// The DNS names and IP addresses that it may sign for; nothing where nothing limits it.
    #[must_use]
    pub fn permitted(&self) -> Option<&[String]> {
        self.permitted.as_deref()
    }

    /// Whether it may sign for all of these names.
    #[must_use]
    pub fn permits(&self, names: &[String]) -> bool {
        self.permitted().is_none_or(|permitted| names.iter().all(|name| permitted.contains(name)))
    }

    /// Whether this encoded public key, algorithm included, is the certificate's.
    #[must_use]
    pub fn has_public_key(&self, subject_public_key_info: &[u8]) -> bool {
        self.identity.public_key == subject_public_key_info
    }
}

/// The names that constraints name one by one; whole networks are none.
fn permitted(parsed: &X509Certificate<'_>) -> Option<Vec<String>> {
    let constraints = parsed.name_constraints().ok().flatten()?;
    let subtrees = constraints.value.permitted_subtrees.as_ref()?;
    let names = subtrees.iter().filter_map(|subtree| match &subtree.base {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    });
    Some(names.collect())
}

/// The names of the subject besides its common name.
fn names(parsed: &X509Certificate<'_>) -> BTreeSet<String> {
    let names = parsed.subject_alternative_name().ok().flatten();
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let known = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => octets(bytes).map(|address| address.to_string()),
        _ => None,
    });
    known.collect()
}

/// The one address that these bytes, an address and its mask, are.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let (address, mask) = bytes.split_at(bytes.len() / 2);
    octets(address).filter(|_| mask.iter().all(|byte| *byte == u8::MAX))
}

fn octets(address: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(address).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(address).map(IpAddr::from)).ok()
}

fn common_name(parsed: &X509Certificate<'_>) -> Option<String> {
    let name = parsed.subject().iter_common_name().next()?;
    name.as_str().ok().map(ToOwned::to_owned)
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("certificate ")?;
        self.serial.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
        write!(formatter, " until {}", self.validity.not_after)
    }
}

/// The certificates that a client of ours trusts, as PEM: sorted, none twice.
#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    certificates: Vec<Certificate>,
    pem: Vec<u8>,
}

impl Bundle {
    /// A bundle of these certificates, or none when there are none: the API server refuses an empty one.
    #[must_use]
    pub fn of(certificates: impl IntoIterator<Item = Certificate>) -> Option<Self> {
        let mut certificates: Vec<_> = certificates.into_iter().collect();
        certificates.sort_by(|left, right| left.der.as_ref().cmp(right.der.as_ref()));
        certificates.dedup();
        let pem = certificates.iter().flat_map(pem_of).collect();
        (!certificates.is_empty()).then_some(Self { certificates, pem })
    }

    /// The PEM text, as `caBundle` carries it (there in base64 once more).
    #[must_use]
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// What is in it, in its order.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.certificates).finish()
    }
}

/// RFC 7468 text of one certificate: lines of 64 characters.
pub(super) fn pem_of(certificate: &Certificate) -> Vec<u8> {
    let encoded = STANDARD.encode(&certificate.der);
    let mut pem = b"-----BEGIN CERTIFICATE-----\n".to_vec();
    for line in encoded.as_bytes().chunks(64) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(b"-----END CERTIFICATE-----\n");
    pem
}

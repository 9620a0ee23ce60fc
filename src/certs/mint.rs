//! Makes keys and certificates: the authority and what it signs.
//!
//! Guarantees: P-256 keys; an authority can be issued again under the same key and name; no leaf outlives the
//! authority that signed it; the gate's own authority can sign for the gate's names alone, so a stolen key cannot
//! impersonate any other server; private keys are never printed.
//! Never: asks the time, reads or writes anything.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData as _,
    SerialNumber,
};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use super::certificate::{Certificate, Unreadable, Validity, pem_of};
use super::rotate::{AUTHORITY_LIFETIME, LEAF_LIFETIME, LeafInUse, SKEW, after};

/// Making or loading a key or certificate failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that no certificate can carry.
    #[error("failed to sign a certificate for {names:?}: {source}")]
    Name {
        /// The names asked for.
        names: Vec<String>,
        /// The error of the library that makes certificates.
        source: rcgen::Error,
    },
    /// The random source or the signature failed.
    #[error("failed to make a certificate: {0}")]
    Crypto(#[from] rcgen::Error),
    /// A date that X.509 cannot express.
    #[error("failed to make a certificate: the clock says {0}")]
    Clock(Timestamp),
    /// No randomness for a serial number.
    #[error("failed to make a certificate: no random bytes")]
    Random,
    /// What was made or loaded is no certificate.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The text holds no certificate.
    #[error("no certificate in it")]
    NoCertificate,
    /// The certificate may not sign.
    #[error("the certificate is not one of an authority")]
    NotAnAuthority,
    /// Key and certificate are of different pairs.
    #[error("the key does not fit the certificate")]
    Mismatch,
}

/// What an authority is called, and how long it holds.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// Its common name, at most 64 bytes.
    pub common_name: &'a str,
    /// How long it holds.
    pub lifetime: SignedDuration,
}

/// What goes into a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Its common name, at most 64 bytes.
    pub common_name: &'a str,
    /// DNS names and IP addresses.
    pub names: &'a [String],
    /// What it is for.
    pub usages: &'a [Usage],
    /// How long it holds, where its authority does.
    pub lifetime: SignedDuration,
}

/// What a leaf is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// To be shown by a server.
    Server,
    /// To be shown by a client.
    Client,
}

/// The gate's own authority.
const OWN: Name<'static> = Name { common_name: "gatehouse authority", lifetime: AUTHORITY_LIFETIME };

/// A certificate authority with its key.
pub struct Authority {
    certificate: Certificate,
    key: KeyPair,
}

/// A certificate with its key.
pub struct Leaf {
    certificate: Certificate,
    issuer: Certificate,
    key: KeyPair,
}

/// The names under which the API server, and people inside the cluster, reach a Service.
#[must_use]
pub fn service_names(service: &str, namespace: &str) -> Vec<String> {
    vec![
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
    ]
}

impl Authority {
    /// A new authority with a new key.
    ///
    /// # Errors
    /// When there is no randomness, or `now` is beyond what X.509 can express.
    pub fn create(now: Timestamp) -> Result<Self, Error> {
        Self::create_as(OWN, now)
    }

    /// A new authority of that name with a new key.
    ///
    /// # Errors
    /// As [`Authority::create`].
    pub fn create_as(name: Name<'_>, now: Timestamp) -> Result<Self, Error> {
        Self::issue(KeyPair::generate()?, name, &[], now)
    }

    /// A new authority with a new key, which can sign for these names alone.
    ///
    /// # Errors
    /// When a name is not ASCII, or as [`Authority::create`].
    pub fn create_for(names: &[String], now: Timestamp) -> Result<Self, Error> {
        Self::issue(KeyPair::generate()?, OWN, names, now)
    }

    /// The same key and name for another [`AUTHORITY_LIFETIME`], for these names and those that it was for.
    ///
    /// # Errors
    /// As [`Authority::create_for`].
    pub fn reissue_for(self, names: &[String], now: Timestamp) -> Result<Self, Error> {
        let before = self.certificate.permitted().unwrap_or_default();
        let names: BTreeSet<_> = before.iter().chain(names).cloned().collect();
        Self::issue(self.key, OWN, &Vec::from_iter(names), now)
    }

    /// The same key and name for another [`AUTHORITY_LIFETIME`].
    ///
    /// # Errors
    /// As [`Authority::create`].
    pub fn reissue(self, now: Timestamp) -> Result<Self, Error> {
        self.reissue_as(OWN, now)
    }

    /// The same key under that name, which has to be the same too where leaves are to stay good.
    ///
    /// # Errors
    /// As [`Authority::create`].
    pub fn reissue_as(self, name: Name<'_>, now: Timestamp) -> Result<Self, Error> {
        Self::issue(self.key, name, &[], now)
    }

    fn issue(key: KeyPair, name: Name<'_>, names: &[String], now: Timestamp) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(name.common_name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.name_constraints = (!names.is_empty()).then(|| constraints(names));
        // The library's own choice is a digest of the key: the same for two certificates of one key, while RFC 5280
        // section 4.1.2.2 wants each of an issuer's serial numbers once.
        params.serial_number = Some(serial()?);
        params.not_before = date(now, -SKEW)?;
        params.not_after = date(now, name.lifetime)?;
        let certificate = Certificate::read(params.self_signed(&key)?.der().clone())?;
        Ok(Self { certificate, key })
    }

    /// Takes up an authority from PEM text, made here or elsewhere.
    ///
    /// # Errors
    /// When either cannot be read, they are not a pair, or the certificate may not sign.
    pub fn load(key: &[u8], certificate: &[u8]) -> Result<Self, Error> {
        let key = KeyPair::from_pem(&String::from_utf8_lossy(key))?;
        let certificate =
            Certificate::read_all(certificate).into_iter().next().ok_or(Error::NoCertificate)?;
        if !certificate.is_authority() {
            return Err(Error::NotAnAuthority);
        }
        if !certificate.has_public_key(&key.subject_public_key_info()) {
            return Err(Error::Mismatch);
        }
        Ok(Self { certificate, key })
    }

    /// Signs a new leaf of a server with a new key for these names, each a DNS name or an IP address.
    ///
    /// # Errors
    /// When a name is not ASCII, or as [`Authority::create`].
    pub fn mint(&self, names: &[String], now: Timestamp) -> Result<Leaf, Error> {
        let usages = &[Usage::Server];
        self.sign(&Profile { common_name: "gatehouse", names, usages, lifetime: LEAF_LIFETIME }, now)
    }

    /// Signs a new leaf with a new key.
    ///
    /// # Errors
    /// As [`Authority::mint`].
    pub fn sign(&self, profile: &Profile<'_>, now: Timestamp) -> Result<Leaf, Error> {
        let mut params = CertificateParams::new(profile.names)
            .map_err(|source| Error::Name { names: profile.names.to_vec(), source })?;
        params.distinguished_name = common_name(profile.common_name);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = profile.usages.iter().copied().map(purpose).collect();
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial()?);
        params.not_before = date(now, -SKEW)?;
        let last = after(now, profile.lifetime).min(self.certificate.validity().not_after);
        params.not_after = date(last, SignedDuration::ZERO)?;
        let key = KeyPair::generate()?;
        let issuer = Issuer::from_ca_cert_der(self.certificate.der(), &self.key)?;
        let certificate = Certificate::read(params.signed_by(&key, &issuer)?.der().clone())?;
        Ok(Leaf { certificate, issuer: self.certificate.clone(), key })
    }

    /// Its certificate.
    #[must_use]
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Its certificate as PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> Vec<u8> {
        pem_of(&self.certificate)
    }

    /// Its private key as PEM. Handle with care.
    #[must_use]
    pub fn key_pem(&self) -> Vec<u8> {
        self.key.serialize_pem().into_bytes()
    }
}

impl Leaf {
    /// What the server sends: the leaf alone, since its authority is what clients have.
    #[must_use]
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.der().clone()]
    }

    /// Its private key. Handle with care.
    #[must_use]
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()))
    }

    /// The leaf as PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> Vec<u8> {
        pem_of(&self.certificate)
    }

    /// Its private key as PEM. Handle with care.
    #[must_use]
    pub fn key_pem(&self) -> Vec<u8> {
        self.key.serialize_pem().into_bytes()
    }

    /// When it holds.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.certificate.validity()
    }

    /// What [`rotate`](super::rotate) has to know of it.
    #[must_use]
    pub const fn in_use(&self) -> LeafInUse<'_> {
        LeafInUse { validity: self.certificate.validity(), issuer: &self.issuer }
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "authority with {:?}", self.certificate)
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "leaf with {:?}", self.certificate)
    }
}

const fn purpose(usage: Usage) -> ExtendedKeyUsagePurpose {
    match usage {
        Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }
}

/// Whether this private key, as PEM of any usual form, is that of the certificate.
#[must_use]
pub fn is_pair(key: &[u8], certificate: &Certificate) -> bool {
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else { return false };
    let Ok(key) = any_supported_type(&key) else { return false };
    key.public_key().is_some_and(|key| certificate.has_public_key(&key))
}

/// These names, and nothing else that a server is called. A kind of name of which none is permitted is not limited by
/// those that are (RFC 5280, section 4.2.1.10), and so is excluded.
fn constraints(names: &[String]) -> NameConstraints {
    let subtree = |name: &String| match name.parse::<IpAddr>() {
        Ok(address) => {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, bits))
        }
        Err(_) => GeneralSubtree::DnsName(name.clone()),
    };
    let permitted_subtrees: Vec<_> = names.iter().map(subtree).collect();
    let has = |kind: fn(&GeneralSubtree) -> bool| permitted_subtrees.iter().any(kind);
    let any = |address| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, 0));
    let mut excluded_subtrees = Vec::new();
    if !has(|one| matches!(one, GeneralSubtree::IpAddress(_))) {
        excluded_subtrees.extend([any(Ipv4Addr::UNSPECIFIED.into()), any(Ipv6Addr::UNSPECIFIED.into())]);
    }
    if !has(|one| matches!(one, GeneralSubtree::DnsName(_))) {
        excluded_subtrees.push(GeneralSubtree::DnsName(String::new()));
    }
    NameConstraints { permitted_subtrees, excluded_subtrees }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// 127 random bits: positive, and of one length.
fn serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| Error::Random)?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn date(moment: Timestamp, offset: SignedDuration) -> Result<OffsetDateTime, Error> {
    let moment = after(moment, offset);
    OffsetDateTime::from_unix_timestamp(moment.as_second()).map_err(|_| Error::Clock(moment))
}

//! The keys, certificates and tokens of one cluster. Nothing of them is known to any other.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::{
    Error,
    files::{random_hex, write_private},
};

/// The names that the API server is reached under, beside its addresses.
const API_SERVER_NAMES: [&str; 6] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Who a component speaks as. Kubernetes has built-in rights for these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    Administrator,
    ControllerManager,
    Scheduler,
    Kubelet,
    Proxy,
    Dns,
}

impl Identity {
    const ALL: [Self; 6] = [
        Self::Administrator,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubelet,
        Self::Proxy,
        Self::Dns,
    ];

    /// The name of the user, and the group that it is in, if any.
    fn user(self) -> (&'static str, &'static str) {
        match self {
            Self::Administrator => ("admin", "system:masters"),
            Self::ControllerManager => ("system:kube-controller-manager", ""),
            Self::Scheduler => ("system:kube-scheduler", ""),
            Self::Kubelet => ("system:node:node", "system:nodes"),
            Self::Proxy => ("system:kube-proxy", ""),
            Self::Dns => ("system:coredns", ""),
        }
    }
}

/// Paths of the files that the components take, and what kubeconfigs need of them.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) ca: PathBuf,
    pub(crate) ca_key: PathBuf,
    pub(crate) ca_pem: String,
    pub(crate) api_server: Pair,
    /// etcd's own, and that of its only client: both ends are sure of each other whatever port they meet on.
    pub(crate) etcd: Pair,
    /// What the API server shows to the kubelet, for logs and exec.
    pub(crate) kubelet_client: Pair,
    /// Signs the tokens of ServiceAccounts, and judges them.
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public_key: PathBuf,
    pub(crate) tokens: PathBuf,
    token_of: Vec<(Identity, String)>,
}

/// A certificate with its key.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Credentials {
    /// Makes all of them, as files in `folder`. The API server and etcd are reached at these addresses too.
    pub(crate) fn create(folder: &Path, addresses: &[String]) -> Result<Self, Error> {
        let issuer = issuer()?;
        let ca_pem = issuer.pem();
        let ca = write(folder, "ca.crt", &ca_pem)?;
        let ca_key = write(folder, "ca.key", &issuer.key().serialize_pem())?;

        let with_addresses = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).chain(addresses.iter().cloned()).collect()
        };
        let server = [ExtendedKeyUsagePurpose::ServerAuth];
        let client = [ExtendedKeyUsagePurpose::ClientAuth];
        let both = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let api_server = with_addresses(&API_SERVER_NAMES);
        let etcd = with_addresses(&["127.0.0.1", "localhost"]);
        let api_server = pair(folder, &issuer, ("kube-apiserver", None), api_server, &server)?;
        let etcd = pair(folder, &issuer, ("etcd", None), etcd, &both)?;
        let subject = ("kubelet-client", Some("system:masters"));
        let kubelet_client = pair(folder, &issuer, subject, Vec::new(), &client)?;
        let signer = KeyPair::generate()?;
        let service_account_key = write(folder, "service-accounts.key", &signer.serialize_pem())?;
        let service_account_public_key = write(folder, "service-accounts.pub", &signer.public_key_pem())?;

        let mut token_of = Vec::new();
        let mut tokens = String::new();
        for identity in Identity::ALL {
            let (token, (user, group)) = (random_hex(32)?, identity.user());
            let group = if group.is_empty() { String::new() } else { format!(",\"{group}\"") };
            tokens.extend([&token, ",", user, ",", user, &group, "\n"]);
            token_of.push((identity, token));
        }
        let tokens = write(folder, "tokens.csv", &tokens)?;
        Ok(Self {
            ca,
            ca_key,
            ca_pem,
            api_server,
            etcd,
            kubelet_client,
            service_account_key,
            service_account_public_key,
            tokens,
            token_of,
        })
    }

    pub(crate) fn token(&self, identity: Identity) -> &str {
        self.token_of.iter().find(|(each, _)| *each == identity).map_or("", |(_, token)| token)
    }
}

/// Makes an authority.
pub(crate) fn issuer() -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "testbed");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// Makes a certificate for a common name and perhaps an organization, which Kubernetes takes for a group.
pub(crate) fn pair(
    folder: &Path,
    issuer: &CertifiedIssuer<'_, KeyPair>,
    (name, organization): (&str, Option<&str>),
    hosts: Vec<String>,
    usages: &[ExtendedKeyUsagePurpose],
) -> Result<Pair, Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = usages.to_vec();
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok(Pair {
        certificate: write(folder, &format!("{name}.crt"), &certificate.pem())?,
        key: write(folder, &format!("{name}.key"), &key.serialize_pem())?,
    })
}

pub(crate) fn write(folder: &Path, name: &str, content: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    write_private(&path, content)?;
    Ok(path)
}

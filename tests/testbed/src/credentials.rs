//! The keys, certificates and tokens of one control plane. Nothing of them is known to any other.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use crate::{
    Error,
    files::{random_hex, write_private},
};

/// The names that the API server is reached under; the address is the first of the service range.
const API_SERVER_NAMES: [&str; 7] = [
    "127.0.0.1",
    "localhost",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Paths of the files that the components take, and what kubeconfigs need of them.
#[derive(Debug)]
pub(crate) struct Credentials {
    pub(crate) ca: PathBuf,
    pub(crate) ca_key: PathBuf,
    pub(crate) ca_pem: String,
    pub(crate) api_server: Pair,
    /// etcd's own, and that of its only client: both ends are sure of each other whatever port they meet on.
    pub(crate) etcd: Pair,
    /// Signs the tokens of ServiceAccounts, and judges them.
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public_key: PathBuf,
    pub(crate) tokens: PathBuf,
    pub(crate) admin_token: String,
    pub(crate) controller_manager_token: String,
}

/// A certificate with its key.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Credentials {
    /// Makes all of them, as files in `folder`.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let ca_pem = issuer.pem();
        let ca = write(folder, "ca.crt", &ca_pem)?;
        let ca_key = write(folder, "ca.key", &issuer.key().serialize_pem())?;

        let server = [ExtendedKeyUsagePurpose::ServerAuth];
        let both = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let api_server = pair(folder, &issuer, "kube-apiserver", &API_SERVER_NAMES, &server)?;
        let etcd = pair(folder, &issuer, "etcd", &["127.0.0.1", "localhost"], &both)?;
        let signer = KeyPair::generate()?;
        let service_account_key = write(folder, "service-accounts.key", &signer.serialize_pem())?;
        let service_account_public_key = write(folder, "service-accounts.pub", &signer.public_key_pem())?;

        let (admin_token, controller_manager_token) = (random_hex(32)?, random_hex(32)?);
        let tokens = format!(
            "{admin_token},admin,admin,\"system:masters\"\n\
             {controller_manager_token},system:kube-controller-manager,kube-controller-manager\n"
        );
        let tokens = write(folder, "tokens.csv", &tokens)?;
        Ok(Self {
            ca,
            ca_key,
            ca_pem,
            api_server,
            etcd,
            service_account_key,
            service_account_public_key,
            tokens,
            admin_token,
            controller_manager_token,
        })
    }
}

fn pair(
    folder: &Path,
    issuer: &CertifiedIssuer<'_, KeyPair>,
    name: &str,
    hosts: &[&str],
    usages: &[ExtendedKeyUsagePurpose],
) -> Result<Pair, Error> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name.push(DnType::CommonName, name);
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

fn write(folder: &Path, name: &str, content: &str) -> Result<PathBuf, Error> {
    let path = folder.join(name);
    write_private(&path, content)?;
    Ok(path)
}

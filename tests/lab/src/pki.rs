//! Who may talk to whom: the cluster's CA and serving certificate, the service-account key, users and kubeconfigs.

use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType};

use crate::error::{Error, FileResult as _};
use crate::namespace::{BRIDGE_ADDRESS, SERVICE_ADDRESS};
use crate::node::Node;
use crate::paths::StateDir;

/// The API server as everything in the lab's namespace reaches it, except further nodes.
pub const API_SERVER: &str = "https://127.0.0.1:6443";

/// Kubeconfig name, user name, groups.
const USERS: &[(&str, &str, &str)] = &[
    ("admin", "admin", "system:masters"),
    ("lab", "lab:dynamo-operator", "system:masters"),
    ("coredns", "lab:coredns", "system:masters"),
    ("kwok", "lab:kwok", "system:masters"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
];

/// Users of each node: kubeconfig name and groups.
const NODE_USERS: [(&str, &str); 3] = [
    ("node", "system:nodes"),
    ("proxy", ""),
    ("dra-driver", "system:masters"),
];

/// Writes `pki/` and `kubeconfig/` for a new cluster with this number of nodes.
pub fn write(state: &StateDir, nodes: u8) -> Result<(), Error> {
    for folder in ["pki", "kubeconfig"] {
        let folder = state.join(folder);
        fs::create_dir_all(&folder).file("create", &folder)?;
    }
    let issuer = authority()?;
    let key = KeyPair::generate()?;
    let certificate = serving_parameters()?.signed_by(&key, &issuer)?;
    secret(&state.join("pki/ca.crt"), &issuer.pem())?;
    secret(&state.join("pki/apiserver.crt"), &certificate.pem())?;
    secret(&state.join("pki/apiserver.key"), &key.serialize_pem())?;
    let signing_key = KeyPair::generate()?;
    secret(&state.join("pki/service-account.key"), &signing_key.serialize_pem())?;
    secret(&state.join("pki/service-account.pub"), &signing_key.public_key_pem())?;

    let mut tokens = Vec::new();
    let users = USERS
        .iter()
        .map(|(name, user, groups)| ((*name).to_owned(), (*user).to_owned(), *groups, API_SERVER.to_owned()));
    let of_nodes = (1..=nodes).flat_map(|number| {
        let node = Node::new(state, number);
        NODE_USERS.map(|(name, groups)| {
            let user = match name {
                "node" => format!("system:node:{}", node.name()),
                "proxy" => "system:kube-proxy".to_owned(),
                _ => format!("lab:{name}"),
            };
            (node.own(name), user, groups, node.api_server())
        })
    });
    for (name, user, groups, server) in users.chain(of_nodes) {
        let token = random_token()?;
        tokens.push(format!("{token},{user},{name},\"{groups}\""));
        secret(&state.kubeconfig(&name), &kubeconfig(state, &user, &token, &server))?;
    }
    secret(&state.join("pki/tokens.csv"), &tokens.join("\n"))
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, "perfval-lab");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?)
}

fn serving_parameters() -> Result<CertificateParams, Error> {
    let names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ];
    let mut parameters = CertificateParams::new(names.map(str::to_owned))?;
    parameters.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    let addresses = [
        IpAddr::from([127, 0, 0, 1]),
        BRIDGE_ADDRESS.into(),
        SERVICE_ADDRESS.into(),
    ];
    parameters.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    Ok(parameters)
}

fn kubeconfig(state: &StateDir, user: &str, token: &str, server: &str) -> String {
    let authority = state.join("pki/ca.crt");
    format!(
        "apiVersion: v1
kind: Config
current-context: lab
clusters:
  - name: lab
    cluster: {{server: {server}, certificate-authority: {}}}
users:
  - name: {user}
    user: {{token: {token}}}
contexts:
  - name: lab
    context: {{cluster: lab, user: {user}}}
",
        authority.display()
    )
}

fn random_token() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .file("read", "/dev/urandom")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

fn secret(path: &Path, content: &str) -> Result<(), Error> {
    use std::io::Write as _;
    let open = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    open.and_then(|mut file| file.write_all(content.as_bytes()))
        .file("write", path)
}

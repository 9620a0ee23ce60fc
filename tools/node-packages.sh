#!/usr/bin/env bash
# Installs the Debian packages that a node of the local cluster needs, where they are missing.
#
#   tools/node-packages.sh              installs what is missing
#   tools/node-packages.sh --missing    names it, one package a line with what asks for it, and does no more
#
# Needs root and apt-get to install; elsewhere it names what is missing and fails. Quick when all is there.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/packages.sh
source "$tools/lib/packages.sh"

# Package, what shows that it is there, and what asks for it.
needs() {
    say runc runc 'containerd runs containers with it'
    say containernetworking-plugins /usr/lib/cni/bridge 'containerd gives pods addresses with them'
    say iptables iptables-restore 'kube-proxy makes services with it, the CNI plugins masquerade'
    say conntrack conntrack 'flows that outlive a service are looked at and ended with it'
    say iproute2 ip 'the network of the cluster is made with it'
    say kmod modprobe 'the kernel loads overlay, br_netfilter and what iptables matches with'
    say mount umount 'kubelet mounts volumes'
    say util-linux nsenter 'a cluster lives in namespaces of its own'
    say busybox-static busybox 'the tests have an image with a shell'
}

install_missing 'the packages of a node' install "$@"

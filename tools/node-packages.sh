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

# The system's folders are not on everyone's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

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

present() { if [[ $1 == /* ]]; then [[ -x $1 ]]; else command -v "$1" >/dev/null; fi; }

missing() {
    local package proof why
    while read -r package proof why; do
        present "$proof" || say "$package: $why"
    done < <(needs)
}

install() {
    local packages=("$@")
    export DEBIAN_FRONTEND=noninteractive
    say "installing ${packages[*]}"
    # The list of packages is fetched only where what is here does not do.
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>&1 || {
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    }
}

main() {
    local lines names
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    lines=$(missing)
    if [[ ${1:-} == --missing ]]; then
        [[ -z $lines ]] || say "$lines"
        return
    fi
    if [[ -z $lines ]]; then
        say "the packages of a node are there"
        return
    fi
    mapfile -t names < <(cut -d: -f1 <<<"$lines")
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        sed 's/^/missing: /' <<<"$lines" >&2
        fail "install what is missing (apt-get install --no-install-recommends ${names[*]}), or run this as root on Debian"
    fi
    install "${names[@]}"
    lines=$(missing)
    [[ -z $lines ]] || fail "still missing after installing: $(cut -d: -f1 <<<"$lines" | paste -sd' ')"
}

main "$@"

#!/usr/bin/env bash
# Builds what the tests and the local cluster run on, from the Go modules pinned beside this script.
#
#   tools/build.sh                    etcd and the control plane of the default Kubernetes
#   tools/build.sh 1.34 [MINOR...]    etcd and the control plane of these Kubernetes versions
#   tools/build.sh all                the control plane of every pinned Kubernetes, etcd of each minor version
#   tools/build.sh node               what a cluster with a node runs on: etcd, all of the default Kubernetes,
#                                     containerd, CoreDNS
#   tools/build.sh images             the images that such a cluster needs: etcd of every pinned version, pause
#   tools/build.sh deploy             what checks deploy/: helm, kustomize, kubeconform and its schemas
#   tools/build.sh FAMILY...          one of the folders beside this script
#   tools/build.sh --print FAMILY     the folder of its binaries; also: kubernetes [MINOR], images, schemas
#
# Binaries go to ${GATEHOUSE_TOOLS:-${XDG_CACHE_HOME:-~/.cache}/gatehouse/tools}/<family>-<version>/bin.
# What is there already, built from the same go.mod, go.sum and flags, is left as it is.
# With KUBEBUILDER_ASSETS set, etcd and the control plane of the default Kubernetes are taken from that folder.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/compile.sh
source "$tools/lib/compile.sh"
# shellcheck source=lib/images.sh
source "$tools/lib/images.sh"
# shellcheck source=lib/schemas.sh
source "$tools/lib/schemas.sh"

readonly DEFAULT_KUBERNETES=1.36
# The etcd of each minor version, on which the client of etcd is tested.
readonly ETCD_MINORS=(etcd etcd-3.5.33 etcd-3.7)

# ---- what is pinned ----

minors() {
    local folder
    for folder in "$tools"/kubernetes-*/; do
        folder=${folder%/}
        printf '%s\n' "${folder##*/kubernetes-}"
    done
}

families() {
    local file
    for file in "$tools"/*/go.mod; do
        file=${file%/go.mod}
        printf '%s\n' "${file##*/}"
    done
}

known() {
    [[ -f $tools/$1/go.mod ]] || fail "unknown: ${1#kubernetes-}; there is: $(
        { printf '%s\n' all node images deploy && minors && families; } | paste -sd' '
    )"
}

# What a family of binaries is about: its module, whose version is the family's.
module_of() {
    case $1 in
    etcd | etcd-*) printf 'go.etcd.io/etcd/server/v3' ;;
    kubernetes-*) printf 'k8s.io/kubernetes' ;;
    containerd) printf 'github.com/containerd/containerd/v2' ;;
    coredns) printf 'github.com/coredns/coredns' ;;
    helm) printf 'helm.sh/helm/v3' ;;
    kustomize) printf 'sigs.k8s.io/kustomize/kustomize/v5' ;;
    kubeconform) printf 'github.com/yannh/kubeconform' ;;
    gojq) printf 'github.com/itchyny/gojq' ;;
    *) fail "tools/$1 has no module in build.sh" ;;
    esac
}

version_of() {
    local module
    module=$(module_of "$1")
    pinned "$1" "$module"
}

# etcd-3.7 pins a release of etcd as etcd does, and kubernetes-1.36 one of Kubernetes.
bin_of() {
    local version
    version=$(version_of "$1")
    printf '%s/%s-%s/bin' "$cache" "${1%%-*}" "$version"
}

# Versions that a program only knows when it is told: without them kube-apiserver reports v0.0.0 and clients
# misjudge it.
ldflags_of() {
    local family=$1 version=$2 package flags='-s -w'
    local major=${version%%.*} rest=${version#*.}
    case $family in
    kubernetes-*)
        for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=$major -X $package.gitMinor=${rest%%.*}"
            flags+=" -X $package.gitTreeState=clean"
        done
        ;;
    containerd) flags+=" -X github.com/containerd/containerd/v2/version.Version=v$version" ;;
    helm) flags+=" -X helm.sh/helm/v3/internal/version.version=v$version" ;;
    kustomize) flags+=" -X sigs.k8s.io/kustomize/api/provenance.version=v$version" ;;
    kubeconform) flags+=" -X main.version=v$version" ;;
    esac
    printf '%s' "$flags"
}

# The binaries of a family: name, package, how long a first build takes.
parts_of() {
    case $1 in
    etcd | etcd-*)
        say etcd go.etcd.io/etcd/server/v3 'about a minute'
        say etcdctl go.etcd.io/etcd/etcdctl/v3 'some 10 seconds'
        say etcdutl go.etcd.io/etcd/etcdutl/v3 'some 10 seconds'
        ;;
    kubernetes-*)
        say kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver '5 to 7 minutes'
        say kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager '1 to 2 minutes'
        say kubectl k8s.io/kubernetes/cmd/kubectl 'about a minute'
        ;;
    containerd)
        say containerd github.com/containerd/containerd/v2/cmd/containerd '1 to 2 minutes'
        say containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 'some seconds'
        say ctr github.com/containerd/containerd/v2/cmd/ctr 'some 10 seconds'
        ;;
    coredns) say coredns github.com/coredns/coredns '2 to 3 minutes' ;;
    helm) say helm helm.sh/helm/v3/cmd/helm '1 to 2 minutes' ;;
    kustomize) say kustomize sigs.k8s.io/kustomize/kustomize/v5 'half a minute' ;;
    kubeconform) say kubeconform github.com/yannh/kubeconform/cmd/kubeconform 'half a minute' ;;
    gojq) say gojq github.com/itchyny/gojq/cmd/gojq 'some 10 seconds' ;;
    esac
}

# What a node needs of the default Kubernetes beside the control plane.
parts_of_node() {
    say kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler 'half a minute'
    say kubelet k8s.io/kubernetes/cmd/kubelet '1 to 2 minutes'
    say kube-proxy k8s.io/kubernetes/cmd/kube-proxy 'half a minute'
}

# ---- building ----

# build FAMILY [PARTS]: PARTS is the function that lists what to build of it.
build() {
    local family=$1 parts=${2:-parts_of} version bin ldflags name package how_long
    version=$(version_of "$family")
    bin=$(bin_of "$family")
    ldflags=$(ldflags_of "$family" "$version")
    while read -r name package how_long <&3; do
        compile "$family" "$package" "$ldflags" "$bin" "$name" "$name $version" "$how_long"
    done 3< <("$parts" "$family")
}

check_assets() {
    local name missing=()
    for name in etcd kube-apiserver kubectl; do
        [[ -x $KUBEBUILDER_ASSETS/$name ]] || missing+=("$name")
    done
    ((${#missing[@]} == 0)) ||
        fail "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS lacks ${missing[*]}; unset it to build the pinned ones"
    say "KUBEBUILDER_ASSETS is set: etcd and the default Kubernetes are taken from $KUBEBUILDER_ASSETS"
    [[ -x $KUBEBUILDER_ASSETS/kube-controller-manager ]] ||
        say "it has no kube-controller-manager: Deployments and Jobs get no Pods and garbage is not collected"
}

build_control_plane() {
    if [[ $1 == "$DEFAULT_KUBERNETES" && -n ${KUBEBUILDER_ASSETS:-} ]]; then
        check_assets
        return
    fi
    build etcd
    build "kubernetes-$1"
}

build_node() {
    build_control_plane "$DEFAULT_KUBERNETES"
    build "kubernetes-$DEFAULT_KUBERNETES" parts_of_node
    build containerd
    build coredns
}

build_deploy() {
    build helm
    build kustomize
    build kubeconform
    build gojq
    build_schemas
}

print_folder() {
    local minor=${2:-$DEFAULT_KUBERNETES}
    case ${1:-} in
    kubernetes)
        known "kubernetes-$minor"
        bin_of "kubernetes-$minor"
        ;;
    images) images_folder ;;
    schemas) schemas_folder ;;
    '') fail "--print takes the name of a family: kubernetes, images, schemas, $(families | paste -sd' ')" ;;
    *)
        known "$1"
        bin_of "$1"
        ;;
    esac
    printf '\n'
}

# What a word of the command line stands for, one step a line.
steps_of() {
    case $1 in
    all)
        minors | sort -rV | sed 's/^/build_control_plane /'
        printf 'build %s\n' "${ETCD_MINORS[@]}"
        ;;
    node | images | deploy) say "build_$1" ;;
    [0-9]*)
        known "kubernetes-$1"
        say "build_control_plane $1"
        ;;
    *)
        known "$1"
        say "build $1"
        ;;
    esac
}

main() {
    local word step steps=() words=("$@")
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    --print)
        shift
        print_folder "$@"
        return
        ;;
    '') words=("$DEFAULT_KUBERNETES") ;;
    esac

    for word in "${words[@]}"; do
        step=$(steps_of "$word")
        mapfile -t -O "${#steps[@]}" steps <<<"$step"
    done
    for step in "${steps[@]}"; do
        # shellcheck disable=SC2086 # a function and its arguments
        $step
    done
}

main "$@"

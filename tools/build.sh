#!/usr/bin/env bash
# Builds what the tests and the local cluster run on, from the Go modules pinned beside this script.
#
#   tools/build.sh                    etcd and the control plane of the default Kubernetes
#   tools/build.sh 1.34 [MINOR...]    etcd and the control plane of these Kubernetes versions
#   tools/build.sh all                what the tests run on: the control plane of the default Kubernetes, API server
#                                     and kubectl of every other, etcd of each minor version
#   tools/build.sh node               what a cluster with a node runs on: etcd, all of the default Kubernetes,
#                                     containerd, CoreDNS
#   tools/build.sh images             the images that such a cluster needs: etcd of every pinned version, pause
#   tools/build.sh deploy             what checks deploy/: helm, kustomize, kubeconform and its schemas
#   tools/build.sh release            what makes and publishes a release: helm, kustomize, gojq, crane, cosign
#   tools/build.sh FAMILY...          one of the folders beside this script
#   tools/build.sh --print FAMILY     the folder of its binaries; also: kubernetes [MINOR], images, schemas
#   tools/build.sh --prune            removes what was built of versions that are no longer pinned here
#
# Binaries go to ${GATEHOUSE_TOOLS:-${XDG_CACHE_HOME:-~/.cache}/gatehouse/tools}/<family>-<version>/bin.
# What is there already, built from the same go.mod, go.sum and flags by the same Go, is left as it is.
# With KUBEBUILDER_ASSETS set, etcd and the control plane of the default Kubernetes are taken from that folder.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/families.sh
source "$tools/lib/families.sh"
# shellcheck source=lib/compile.sh
source "$tools/lib/compile.sh"
# shellcheck source=lib/images.sh
source "$tools/lib/images.sh"
# shellcheck source=lib/schemas.sh
source "$tools/lib/schemas.sh"

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
    say "$REPLY"
}

# Removes from the cache what was built of versions that are no longer pinned here.
prune() {
    local family folder name kept=' '
    for family in $(families); do
        bin_of "$family"
        kept+="${REPLY%/bin} "
        if [[ $family == etcd* ]]; then version_of "$family" && kept+="$cache/images/etcd-$REPLY.tar "; fi
    done
    schemas_folder
    kept+="$REPLY $cache/images/pause.tar $cache/images/busybox.tar "
    lock
    for folder in "$cache"/*/ "$cache"/images/*.tar; do
        folder=${folder%/}
        # What has no stamp is not the work of this script, or not done.
        [[ -d $folder/stamps || -f $folder/.stamp || -f $folder.stamp ]] || continue
        [[ $kept != *" $folder "* ]] || continue
        say "removing $folder"
        rm -rf -- "$folder" "$folder.stamp"
    done
}

main() {
    local word
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
    --prune)
        prune
        return
        ;;
    '') set -- "$DEFAULT_KUBERNETES" ;;
    esac

    for word; do want_word "$word"; done
    build_wanted
    if [[ -n $images_wanted ]]; then build_images; fi
    if [[ -n $schemas_wanted ]]; then build_schemas; fi
}

main "$@"

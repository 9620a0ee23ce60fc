#!/usr/bin/env bash
# Makes a release of gatehouse, and publishes it. `make release` and `make publish` call this script, as the workflow does.
#
#   tools/release.sh make VERSION       compiles, describes and packs the release, below target/releases/VERSION
#   tools/release.sh pack VERSION       packs the programs and descriptions that are there
#   tools/release.sh publish VERSION    pushes what was packed to the registry, and signs it
#
# REGISTRY is the registry and the folder in it: registry.example.org/team. The image becomes REGISTRY/gatehouse:VERSION,
# the chart oci://REGISTRY/charts/gatehouse. Other variables:
#
#   KEY            publish: the private key of cosign (COSIGN_PASSWORD opens it); `keyless` signs by the identity of a CI
#   CHART_KEY      publish: a key of gpg, with which `helm pull --verify` checks the chart; without it there is no such file
#   DOWNLOADS      pack: the URL of the folder that will hold the files; without it there is no manifest for krew
#   ARCHITECTURES  amd64 and arm64, unless it names one of them
#   FOLDER         where the release is made: target/releases/VERSION
#   BUILDER        pack: who builds, as a URI for the provenance
#
# The same commit gives the same files in every folder and for every user. FOLDER/files holds them, with SHA256SUMS; the
# signatures and provenance.json, which says who built, are not among the sums. FOLDER/parts holds what is packed:
# ARCHITECTURE/rootfs, ARCHITECTURE.cdx.json, licences.txt.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/archive.sh
source "$tools/lib/archive.sh"
# shellcheck source=lib/release/describe.sh
source "$tools/lib/release/describe.sh"
# shellcheck source=lib/release/deploy.sh
source "$tools/lib/release/deploy.sh"
# shellcheck source=lib/release/publish.sh
source "$tools/lib/release/publish.sh"
export LC_ALL=C
cd -- "$tools/.."

version='' registry='' revision='' files='' parts='' scratch=''
architectures=()

# A program of tools/build.sh.
run() {
    local name=$1
    shift
    REPLY=$("$tools/build.sh" --print "$name")
    "$REPLY/$name" "$@"
}

cleanup() { [[ -z $scratch ]] || rm -rf -- "$scratch"; }

prepare() {
    local have
    version=${1:-} registry=${REGISTRY:-}
    [[ -n $version ]] || fail "the version is wanted: VERSION=0.1.0"
    [[ -n $registry ]] || fail "the registry is wanted: REGISTRY=registry.example.org/team"
    have=$(sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
    [[ $version == "$have" ]] || fail "the version $version is not $have, which Cargo.toml has; docs/releasing.md says what to change"
    revision=$(git describe --always --abbrev=40 --match= --dirty 2>/dev/null || printf unknown)
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || printf 0)}
    export SOURCE_DATE_EPOCH
    FOLDER=$(realpath -m -- "${FOLDER:-target/releases/$version}")
    files=$FOLDER/files parts=$FOLDER/parts
    read -r -a architectures <<<"${ARCHITECTURES:-amd64 arm64}"
    scratch=$(mktemp -d)
    trap cleanup EXIT
}

# The programs, as the image holds them.
compile() {
    local architecture
    for architecture in "${architectures[@]}"; do
        AUDITABLE=$(cargo_tool cargo-auditable) tools/rootfs.sh "$parts/$architecture/rootfs" "$architecture"
    done
}

# ---- what is packed ----

# The image index of all architectures. Leaves its digest in `image_digest`.
image_digest=
pack_image() {
    local architecture list='' archive=$files/gatehouse-$version-image.tar
    for architecture in "${architectures[@]}"; do list+=${list:+,}$architecture=$parts/$architecture/rootfs; done
    tools/image.sh Dockerfile "$list" "$registry/gatehouse:$version" "$archive" "VERSION=$version" "REVISION=$revision"
    image_digest=$(tar --extract --to-stdout --file "$archive" index.json | run gojq -r '.manifests[0].digest')
}

# The command line: the program of the image, and the licences.
pack_archives() {
    local architecture folder
    for architecture in "${architectures[@]}"; do
        folder=$scratch/archive-$architecture
        install -d -m 755 "$folder"
        install -m 755 "$parts/$architecture/rootfs/gatehouse" "$folder/gatehouse"
        install -m 644 LICENSE "$folder/LICENSE"
        if [[ -f $parts/licences.txt ]]; then install -m 644 "$parts/licences.txt" "$folder/LICENCES-OF-OTHERS.txt"; fi
        tarball "$folder" "$SOURCE_DATE_EPOCH" | gzip -n >"$(archive_of "$architecture")"
    done
}
archive_of() { printf '%s/gatehouse-%s-linux-%s.tar.gz' "$files" "$version" "$1"; }

# What describes the programs, where it was made.
pack_descriptions() {
    local architecture
    for architecture in "${architectures[@]}"; do
        if [[ -f $parts/$architecture.cdx.json ]]; then
            install -m 644 "$parts/$architecture.cdx.json" "$files/gatehouse-$version-linux-$architecture.cdx.json"
        fi
    done
    if [[ -f $parts/licences.txt ]]; then install -m 644 "$parts/licences.txt" "$files/gatehouse-$version-licences.txt"; fi
}

pack() {
    local architecture
    for architecture in "${architectures[@]}"; do
        [[ -x $parts/$architecture/rootfs/gatehouse ]] || fail "there is no $parts/$architecture/rootfs/gatehouse; run $0 make"
    done
    rm -rf -- "$files"
    mkdir -p -- "$files"
    pack_image
    pack_archives
    pack_descriptions
    pack_chart
    pack_manifests
    pack_krew
    (cd -- "$files" && sha256sum -- *) >"$scratch/SHA256SUMS"
    mv -- "$scratch/SHA256SUMS" "$files/SHA256SUMS"
    write_provenance
    say "$files holds gatehouse $version, of $revision:"
    cat -- "$files/SHA256SUMS"
}

main() {
    case ${1:-} in
    make)
        prepare "${2:-}"
        [[ $revision != *-dirty ]] || fail "the working tree has changes: a release is made of a commit"
        tools/doctor.sh release
        tools/build.sh release
        rm -rf -- "$parts"
        mkdir -p -- "$parts"
        compile
        describe
        pack
        ;;
    pack)
        prepare "${2:-}"
        pack
        ;;
    publish)
        prepare "${2:-}"
        publish
        ;;
    -h | --help) usage "${BASH_SOURCE[0]}" ;;
    *) fail "make, pack or publish is wanted; see $0 --help" ;;
    esac
}

main "$@"

#!/usr/bin/env bash
# Packs a folder as an image, without a daemon and without root.
#
#   tools/image.sh [--plain] DOCKERFILE ROOTFS REFERENCE ARCHIVE [NAME=VALUE...]
#
# ROOTFS is a folder, and the image is for this machine's architecture. Or ROOTFS is `amd64=FOLDER,arm64=FOLDER`, and the
# archive holds an index with an image for each architecture.
#
# An image has one layer, which holds what its folder holds, all of it owned by root, and the configuration that the last
# stage of DOCKERFILE gives it. That stage has to be `FROM scratch` and to copy one folder to `/`: then an image built
# from the DOCKERFILE elsewhere has the same content and configuration. NAME=VALUE is a value for its ARG NAME.
#
# ARCHIVE is an OCI image layout in a tar file; the image or the index in it is called REFERENCE. An archive of one image
# also has the file that `docker load` of older releases reads. The same ROOTFS, DOCKERFILE and SOURCE_DATE_EPOCH
# (default 0) give the same bytes. The layer is compressed with gzip; with --plain it is not, which is quicker to import.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=lib/archive.sh
source "$tools/lib/archive.sh"
export LC_ALL=C

declare -A arguments=() env=() labels=() ports=() # of the image's configuration
user='' workdir='' entrypoint='' cmd='' copied='' created='' epoch='' dockerfile=''

# A text as a JSON string.
json() {
    local text=$1
    [[ $text != *[[:cntrl:]]* ]] || fail "$dockerfile: a control character in a value"
    text=${text//\\/\\\\}
    printf '"%s"' "${text//\"/\\\"}"
}

# The entries of an associative array, sorted by name, as `"name":value` with commas between. PRINT makes the value.
json_entries() {
    local -n entries=$1
    local print=$2 name comma=
    while IFS= read -r name; do
        [[ -n $name ]] || continue
        printf '%s%s:' "$comma" "$(json "$name")"
        "$print" "${entries[$name]}"
        comma=,
    done < <(printf '%s\n' "${!entries[@]}" | sort)
}
empty_object() { printf '{}'; }

# ---- the configuration, from the Dockerfile ----

# The instructions of the last stage, one a line, and the ARGs before the first FROM.
instructions() {
    awk '
        /^[[:space:]]*(#|$)/ { next }
        { line = line $0 }
        /\\$/ { sub(/\\$/, "", line); next }
        { sub(/^[[:space:]]+/, "", line); lines[++count] = line; line = "" }
        toupper(lines[count]) ~ /^FROM[[:space:]]/ { start = count; if (!first) first = count }
        END {
            for (i = 1; i < first; i++) print lines[i]
            for (i = start; i <= count; i++) print lines[i]
        }' "$dockerfile"
}

# A value with its quotes taken off and ${NAME} replaced.
value() {
    local text=$1 name
    [[ $text != \"*\" ]] || text=${text:1:-1}
    while [[ $text =~ \$\{([A-Za-z_][A-Za-z0-9_]*)\} ]]; do
        name=${BASH_REMATCH[1]}
        [[ -v arguments[$name] ]] || fail "$dockerfile: no ARG $name"
        text=${text//"\${$name}"/"${arguments[$name]}"}
    done
    [[ $text != *\$* ]] || fail "$dockerfile: only \${NAME} of an ARG is understood: $text"
    printf '%s' "$text"
}

# name=value, into the array of this name.
# shellcheck disable=SC2034
assign() {
    local -n into=$1
    [[ $2 =~ ^[A-Za-z_][A-Za-z0-9_./-]*= ]] || fail "$dockerfile: one name=value is understood here: $2"
    into[${2%%=*}]=$(value "${2#*=}")
}

exec_form() {
    [[ $1 =~ ^\[\"[^\"\\]*\"(, *\"[^\"\\]*\")*\]$ ]] || fail "$dockerfile: only a JSON list of strings is understood: $1"
    printf '%s' "${1//, /,}"
}

read_dockerfile() {
    local word rest port whole_folder='^(--from=[^ ]+ )?[^ ]+ /$'
    while read -r word rest; do
        case ${word^^} in
        FROM) [[ $rest == scratch || $rest == 'scratch AS '* ]] || fail "$dockerfile: the last stage is not FROM scratch" ;;
        ARG)
            if [[ $rest != *=* ]]; then
                [[ -v arguments[$rest] ]] || fail "$dockerfile: ARG $rest has no value; give it as $rest=VALUE"
            elif [[ ! -v arguments[${rest%%=*}] ]]; then
                assign arguments "$rest"
            fi
            ;;
        COPY)
            [[ $rest =~ $whole_folder && -z $copied ]] ||
                fail "$dockerfile: the last stage has to copy one folder to /, once"
            copied=yes
            ;;
        USER) user=$(value "$rest") ;;
        WORKDIR) workdir=$(value "$rest") ;;
        ENV) assign env "$rest" ;;
        LABEL) assign labels "$rest" ;;
        EXPOSE) for port in $rest; do ports[$port/tcp]=; done ;;
        ENTRYPOINT) entrypoint=$(exec_form "$rest") ;;
        CMD) cmd=$(exec_form "$rest") ;;
        *) fail "$dockerfile: $word is not understood in the last stage" ;;
        esac
    done < <(instructions)
    [[ -n $copied ]] || fail "$dockerfile: the last stage copies nothing"
    # What builders put into the environment of an image from scratch.
    env[PATH]=${env[PATH]:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
}

# An architecture, as the fields of a platform.
platform() {
    case $1 in
    amd64) printf '"architecture":"amd64"' ;;
    arm64) printf '"architecture":"arm64","variant":"v8"' ;;
    *) fail "$1 is no architecture of images here; amd64 and arm64 are known" ;;
    esac
}

# configuration ARCHITECTURE DIGEST: of the image with a layer of this digest.
configuration() {
    local pairs=() name comma=
    printf '{"created":"%s",%s,"os":"linux","config":{' "$created" "$(platform "$1")"
    if [[ -n $user ]]; then printf '%s"User":%s' "$comma" "$(json "$user")" && comma=,; fi
    if ((${#ports[@]})); then printf '%s"ExposedPorts":{%s}' "$comma" "$(json_entries ports empty_object)" && comma=,; fi
    for name in "${!env[@]}"; do pairs+=("$(json "$name=${env[$name]}")"); done
    if ((${#pairs[@]})); then
        printf '%s"Env":[%s]' "$comma" "$(printf '%s\n' "${pairs[@]}" | sort | paste -sd,)" && comma=,
    fi
    if [[ -n $entrypoint ]]; then printf '%s"Entrypoint":%s' "$comma" "$entrypoint" && comma=,; fi
    if [[ -n $cmd ]]; then printf '%s"Cmd":%s' "$comma" "$cmd" && comma=,; fi
    printf '%s"WorkingDir":%s' "$comma" "$(json "${workdir:-/}")"
    if ((${#labels[@]})); then printf ',"Labels":{%s}' "$(json_entries labels json)"; fi
    printf '},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},' "$2"
    printf '"history":[{"created":"%s","created_by":"tools/image.sh"}]}' "$created"
}

# ---- the archive ----

# Moves a file to its place among the blobs and prints its digest.
blob() {
    local sum
    sum=$(digest "$1")
    mv -- "$1" "$layout/blobs/sha256/$sum"
    printf '%s' "$sum"
}
descriptor() {
    local type=$1 sum=$2 more=${3:-}
    printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s%s}' \
        "$type" "$sum" "$(stat -c %s -- "$layout/blobs/sha256/$sum")" "$more"
}

layout= # folder that the archive is made from

# image ARCHITECTURE ROOTFS PLAIN: adds an image to the blobs. Leaves its descriptor in REPLY, and in `loaded` the blobs that
# older releases of docker load.
loaded=
image() {
    local architecture=$1 rootfs=$2 plain=$3 type=layer.v1.tar diff_id layer config manifest
    tarball "$rootfs" "$epoch" >"$layout/layer"
    diff_id=$(digest "$layout/layer")
    if [[ -z $plain ]]; then
        gzip -n "$layout/layer"
        mv -- "$layout/layer.gz" "$layout/layer"
        type+=+gzip
    fi
    layer=$(blob "$layout/layer")
    configuration "$architecture" "$diff_id" >"$layout/config"
    config=$(blob "$layout/config")
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
        "$(descriptor config.v1+json "$config")" "$(descriptor "$type" "$layer")" >"$layout/manifest"
    manifest=$(blob "$layout/manifest")
    loaded="\"Config\":\"blobs/sha256/$config\",\"Layers\":[\"blobs/sha256/$layer\"]"
    REPLY=$(descriptor manifest.v1+json "$manifest" ",\"platform\":{$(platform "$architecture"),\"os\":\"linux\"}")
}

# The images of a list `amd64=FOLDER,arm64=FOLDER`, as descriptors with commas between.
images() {
    local plain=$2 entry entries descriptors=
    IFS=, read -r -a entries <<<"$1"
    for entry in "${entries[@]}"; do
        [[ $entry == *=* && -d ${entry#*=} ]] || fail "$entry: ARCHITECTURE=FOLDER is wanted, and the folder has to exist"
        image "${entry%%=*}" "${entry#*=}" "$plain"
        descriptors+=${descriptors:+,}$REPLY
    done
    REPLY=$descriptors
}

# An index of descriptors.
index() {
    printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s]}' "$1"
}

pack() {
    local rootfs=$1 reference=$2 archive=$3 plain=$4 names sum
    layout=$(mktemp -d)
    trap 'rm -rf -- "$layout"' EXIT
    mkdir -p -- "$layout/blobs/sha256"
    reference=$(json "$reference")
    names=",\"annotations\":{\"io.containerd.image.name\":$reference,\"org.opencontainers.image.ref.name\":$reference}}"
    if [[ -d $rootfs ]]; then
        image "$(architecture)" "$rootfs" "$plain"
        printf '[{%s,"RepoTags":[%s]}]' "$loaded" "$reference" >"$layout/manifest.json"
    else
        images "$rootfs" "$plain"
        index "$REPLY" >"$layout/index"
        sum=$(blob "$layout/index")
        REPLY=$(descriptor index.v1+json "$sum")
    fi
    index "${REPLY%\}}$names" >"$layout/index.json"
    printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"

    # One mode for all, whatever the umask is.
    find "$layout" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
    mkdir -p -- "$(dirname -- "$archive")"
    tarball "$layout" "$epoch" >"$archive.$$"
    mv -f -- "$archive.$$" "$archive"
}

main() {
    local plain='' rootfs reference archive
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    --plain)
        plain=yes
        shift
        ;;
    esac
    (($# >= 4)) || fail "DOCKERFILE, ROOTFS, REFERENCE and ARCHIVE are wanted; see $0 --help"
    dockerfile=$1 rootfs=$2 reference=$3 archive=$4
    shift 4
    [[ -f $dockerfile ]] || fail "there is no $dockerfile"
    [[ -d $rootfs || $rootfs == *=* ]] || fail "there is no folder $rootfs"
    epoch=${SOURCE_DATE_EPOCH:-0}
    [[ $epoch =~ ^[0-9]+$ ]] || fail "SOURCE_DATE_EPOCH=$epoch: seconds since 1970 are wanted"
    created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
    while (($#)); do
        [[ $1 == ?*=* ]] || fail "$1: NAME=VALUE is wanted"
        arguments[${1%%=*}]=${1#*=}
        shift
    done
    read_dockerfile
    pack "$rootfs" "$reference" "$archive" "$plain"
}

main "$@"

#!/usr/bin/env bash
# Builds the control plane that the tests run on, from the Go modules pinned beside this script.
#
#   tools/build.sh                          etcd and the default Kubernetes
#   tools/build.sh 1.34 [MINOR...]          etcd and these Kubernetes versions
#   tools/build.sh all                      etcd and every pinned Kubernetes
#   tools/build.sh --print etcd             the folder that etcd's binaries are in
#   tools/build.sh --print kubernetes [1.34]
#
# Binaries go to ${GATEHOUSE_TOOLS:-${XDG_CACHE_HOME:-~/.cache}/gatehouse/tools}/<family>-<version>/bin.
# What is there already, built from the same go.mod, go.sum and flags, is left as it is.
# With KUBEBUILDER_ASSETS set, etcd and the default Kubernetes are taken from that folder instead.
set -euo pipefail

readonly DEFAULT_KUBERNETES=1.36
readonly PROGRESS_SECONDS=30

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${GATEHOUSE_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/gatehouse/tools}
readonly here cache

compiler=   # process id of the running go build
unfinished= # file that it writes
scratch=    # folder that it works in

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

usage() { sed -n '/^# Builds/,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"; }

cleanup() {
    if [[ -n $compiler ]] && kill "$compiler" 2>/dev/null; then wait "$compiler" || true; fi
    if [[ -n $unfinished ]]; then rm -f -- "$unfinished"; fi
    if [[ -n $scratch ]]; then rm -rf -- "$scratch"; fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- what is pinned ----

# The version that FOLDER's go.mod requires of MODULE, without the v.
pinned() {
    local folder=$1 module=$2 version
    version=$(awk -v module="$module" '
        $1 == "require" && $2 == module { print $3; exit }
        $1 == module && $2 ~ /^v/ { print $2; exit }' "$here/$folder/go.mod")
    [[ -n $version ]] || fail "tools/$folder/go.mod does not require $module"
    printf '%s' "${version#v}"
}

minors() {
    local folder
    for folder in "$here"/kubernetes-*/; do
        folder=${folder%/}
        printf '%s\n' "${folder##*/kubernetes-}"
    done
}

known_minor() {
    [[ -f $here/kubernetes-$1/go.mod ]] ||
        fail "Kubernetes $1 is not pinned here; there is: $(minors | paste -sd' ')"
}

etcd_folder() {
    local version
    version=$(pinned etcd go.etcd.io/etcd/server/v3)
    printf '%s/etcd-%s/bin' "$cache" "$version"
}

kubernetes_folder() {
    local version
    version=$(pinned "kubernetes-$1" k8s.io/kubernetes)
    printf '%s/kubernetes-%s/bin' "$cache" "$version"
}

# Without these the server reports v0.0.0 and clients misjudge it.
kubernetes_ldflags() {
    local version=$1 package flags='-s -w'
    local major=${version%%.*} rest=${version#*.}
    for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=$major -X $package.gitMinor=${rest%%.*}"
        flags+=" -X $package.gitTreeState=clean"
    done
    printf '%s' "$flags"
}

# ---- building ----

need_go() {
    local folder=$1 wanted have
    wanted=$(awk '$1 == "go" { print $2; exit }' "$here/$folder/go.mod")
    command -v go >/dev/null ||
        fail "go is not installed; install Go $wanted or newer (https://go.dev/dl) and put its bin folder on PATH"
    # An older go may fetch the toolchain it lacks; then this answers with that one.
    have=$(cd "$here/$folder" && go env GOVERSION 2>/dev/null) ||
        have=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || have=
    have=${have#go}
    have=${have%% *}
    [[ $(printf '%s\n%s\n' "$wanted" "${have:-0}" | sort -V | head -n1) == "$wanted" ]] ||
        fail "tools/$folder needs Go $wanted or newer, this is ${have:-an unknown version}; install a newer Go (https://go.dev/dl)"
}

# The checksum of all that decides what a binary is.
recipe() {
    local folder=$1 package=$2 ldflags=$3
    {
        cat -- "$here/$folder/go.mod" "$here/$folder/go.sum"
        printf '%s\n' "$package" "$ldflags" CGO_ENABLED=0 -trimpath
    } | sha256sum | cut -d' ' -f1
}

built() {
    local bin=$1 name=$2 sum=$3 stamp
    stamp=${bin%/bin}/stamps/$name
    [[ -x $bin/$name && -f $stamp && $(<"$stamp") == "$sum" ]]
}

# compile FOLDER PACKAGE LDFLAGS BIN NAME WHAT HOW_LONG
compile() {
    local folder=$1 package=$2 ldflags=$3 bin=$4 name=$5 what=$6 how_long=$7 sum start next
    sum=$(recipe "$folder" "$package" "$ldflags")
    if built "$bin" "$name" "$sum"; then
        say "$what is built already"
        return
    fi
    need_go "$folder"
    lock
    if built "$bin" "$name" "$sum"; then # by the run that held the lock
        say "$what was built meanwhile"
        return
    fi
    mkdir -p -- "$bin" "${bin%/bin}/stamps"
    unfinished=$bin/.$name.$$
    say "$what: building (cold: $how_long on two cores)"
    start=$SECONDS
    next=$PROGRESS_SECONDS
    scratch=$(mktemp -d)
    (
        cd "$here/$folder"
        export GOWORK=off CGO_ENABLED=0 GOTMPDIR=$scratch
        exec go build -trimpath -ldflags "$ldflags" -o "$unfinished" "$package"
    ) 9>&- &
    compiler=$!
    while kill -0 "$compiler" 2>/dev/null; do
        sleep 1
        if ((SECONDS - start >= next)); then
            say "$what: $((SECONDS - start)) s"
            next=$((next + PROGRESS_SECONDS))
        fi
    done
    wait "$compiler" || { compiler= && fail "$what did not build; the compiler's words are above"; }
    compiler=
    mv -f -- "$unfinished" "$bin/$name"
    unfinished=
    rm -rf -- "$scratch"
    scratch=
    printf '%s\n' "$sum" >"${bin%/bin}/stamps/.$name.$$"
    mv -f -- "${bin%/bin}/stamps/.$name.$$" "${bin%/bin}/stamps/$name"
    say "$what: built in $((SECONDS - start)) s"
}

locked=
# One build at a time; held until this script ends.
lock() {
    [[ -z $locked ]] || return 0
    mkdir -p -- "$cache"
    exec 9>"$cache/.lock"
    if ! flock -n 9; then
        say "another build is running; waiting for it"
        flock 9
    fi
    locked=yes
}

build_etcd() {
    local version bin
    version=$(pinned etcd go.etcd.io/etcd/server/v3)
    bin=$(etcd_folder)
    compile etcd go.etcd.io/etcd/server/v3 '-s -w' "$bin" etcd "etcd $version" 'about a minute'
    compile etcd go.etcd.io/etcd/etcdctl/v3 '-s -w' "$bin" etcdctl "etcdctl $version" 'some 10 seconds'
    compile etcd go.etcd.io/etcd/etcdutl/v3 '-s -w' "$bin" etcdutl "etcdutl $version" 'some 10 seconds'
}

build_kubernetes() {
    local minor=$1 version bin ldflags
    version=$(pinned "kubernetes-$minor" k8s.io/kubernetes)
    bin=$(kubernetes_folder "$minor")
    ldflags=$(kubernetes_ldflags "$version")
    compile "kubernetes-$minor" k8s.io/kubernetes/cmd/kube-apiserver "$ldflags" "$bin" \
        kube-apiserver "kube-apiserver $version" '5 to 7 minutes'
    compile "kubernetes-$minor" k8s.io/kubernetes/cmd/kube-controller-manager "$ldflags" "$bin" \
        kube-controller-manager "kube-controller-manager $version" '1 to 2 minutes'
    compile "kubernetes-$minor" k8s.io/kubernetes/cmd/kubectl "$ldflags" "$bin" \
        kubectl "kubectl $version" 'about a minute'
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

print_folder() {
    local minor=${2:-$DEFAULT_KUBERNETES}
    case ${1:-} in
    etcd) etcd_folder ;;
    kubernetes)
        known_minor "$minor"
        kubernetes_folder "$minor"
        ;;
    *) fail "--print takes etcd or kubernetes" ;;
    esac
    printf '\n'
}

main() {
    local minor wanted=() etcd_done=
    case ${1:-} in
    -h | --help)
        usage
        return
        ;;
    --print)
        shift
        print_folder "$@"
        return
        ;;
    all) mapfile -t wanted < <(minors | sort -rV) ;;
    '') wanted=("$DEFAULT_KUBERNETES") ;;
    *) wanted=("$@") ;;
    esac

    for minor in "${wanted[@]}"; do known_minor "$minor"; done
    for minor in "${wanted[@]}"; do
        if [[ $minor == "$DEFAULT_KUBERNETES" && -n ${KUBEBUILDER_ASSETS:-} ]]; then
            check_assets
            continue
        fi
        if [[ -z $etcd_done ]]; then build_etcd; fi
        etcd_done=yes
        build_kubernetes "$minor"
    done
}

main "$@"

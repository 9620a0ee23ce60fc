# Sourced by build.sh and doctor.sh: what is pinned beside these scripts, what is built of it, and what of that is
# missing. Reads files and asks Go for its version; never builds or downloads. A function that gives one text leaves it
# in REPLY: a process for each would take longer than all the rest.
# shellcheck shell=bash

readonly DEFAULT_KUBERNETES=1.37
# The etcd of each minor version, on which the client of etcd is tested.
readonly ETCD_MINORS=(etcd etcd-3.5.33 etcd-3.7)

# What a family of binaries is about, by the first word of its name: the module whose version is the family's.
declare -rA MODULES=(
    [etcd]=go.etcd.io/etcd/server/v3
    [kubernetes]=k8s.io/kubernetes
    [containerd]=github.com/containerd/containerd/v2
    [coredns]=github.com/coredns/coredns
    [helm]=helm.sh/helm/v3
    [kustomize]=sigs.k8s.io/kustomize/kustomize/v5
    [kubeconform]=github.com/yannh/kubeconform
    [gojq]=github.com/itchyny/gojq
    [crane]=github.com/google/go-containerregistry
    [cosign]=github.com/sigstore/cosign/v3
    [actionlint]=github.com/rhysd/actionlint
)

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
        { printf '%s\n' all node images deploy release && minors && families; } | paste -sd' '
    )"
}

declare -A versions=() # of every family, read at once
version_of() {
    local file family line words patterns
    if ((${#versions[@]} == 0)); then
        printf -v patterns '%s v\n' "${MODULES[@]}"
        while IFS= read -r -d '' file && IFS= read -r line; do
            family=${file%/go.mod} family=${family##*/}
            read -r -a words <<<"${line#require}"
            if [[ ${words[0]} == "${MODULES[${family%%-*}]}" ]]; then versions[$family]=${words[1]#v}; fi
        done < <(grep --null -HF -- "${patterns%$'\n'}" "$tools"/*/go.mod)
    fi
    [[ -v versions[$1] ]] || fail "tools/$1/go.mod does not require ${MODULES[${1%%-*}]:-what lib/families.sh names}"
    REPLY=${versions[$1]}
}

# etcd-3.7 pins a release of etcd as etcd does, and kubernetes-1.37 one of Kubernetes.
bin_of() {
    version_of "$1"
    REPLY=$cache/${1%%-*}-$REPLY/bin
}

# The binaries of a family, one a line: name, package, and the seconds that it adds to a first build on two cores.
parts_of() {
    case $1 in
    etcd | etcd-*)
        REPLY='etcd go.etcd.io/etcd/server/v3 50
            etcdctl go.etcd.io/etcd/etcdctl/v3 5
            etcdutl go.etcd.io/etcd/etcdutl/v3 5'
        ;;
    kubernetes-*)
        REPLY='kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver 230
            kubectl k8s.io/kubernetes/cmd/kubectl 25
            kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager 70'
        ;;
    containerd)
        REPLY='containerd github.com/containerd/containerd/v2/cmd/containerd 80
            containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 5
            ctr github.com/containerd/containerd/v2/cmd/ctr 5'
        ;;
    coredns) REPLY='coredns . 60' ;;
    helm) REPLY='helm helm.sh/helm/v3/cmd/helm 120' ;;
    kustomize) REPLY='kustomize sigs.k8s.io/kustomize/kustomize/v5 15' ;;
    kubeconform) REPLY='kubeconform github.com/yannh/kubeconform/cmd/kubeconform 5' ;;
    gojq) REPLY='gojq github.com/itchyny/gojq/cmd/gojq 5' ;;
    crane) REPLY='crane github.com/google/go-containerregistry/cmd/crane 30' ;;
    cosign) REPLY='cosign github.com/sigstore/cosign/v3/cmd/cosign 180' ;;
    actionlint) REPLY='actionlint github.com/rhysd/actionlint/cmd/actionlint 10' ;;
    *) fail "tools/$1 has no binaries in lib/families.sh" ;;
    esac
    # What a node needs beside the control plane.
    [[ $1 != "kubernetes-$DEFAULT_KUBERNETES" ]] || REPLY+='
            kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler 10
            kubelet k8s.io/kubernetes/cmd/kubelet 30
            kube-proxy k8s.io/kubernetes/cmd/kube-proxy 10'
}

# Versions that a program only knows when it is told: without them kube-apiserver reports v0.0.0 and clients
# misjudge it.
ldflags_of() {
    local version package flags='-s -w'
    version_of "$1"
    version=$REPLY
    local major=${version%%.*} rest=${version#*.}
    case $1 in
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
    crane) flags+=" -X github.com/google/go-containerregistry/cmd/crane/cmd.Version=v$version" ;;
    cosign) flags+=" -X sigs.k8s.io/release-utils/version.gitVersion=v$version" ;;
    actionlint) flags+=" -X github.com/rhysd/actionlint.version=$version" ;;
    esac
    REPLY=$flags
}

# ---- what is wanted ----

readonly CONTROL_PLANE=(kube-apiserver kubectl kube-controller-manager)
readonly NODE=(kube-scheduler kubelet kube-proxy)

wanted_families=()   # in the order in which they were asked for
declare -A wanted=() # the names of a family's binaries, with a space at both ends
schemas_wanted= images_wanted=

# want FAMILY [NAME...]: these binaries of a family, or all of them.
want() {
    local family=$1 name rest
    shift
    if (($# == 0)); then
        parts_of "$family"
        while read -r name rest; do set -- "$@" "$name"; done <<<"$REPLY"
    fi
    [[ -v wanted[$family] ]] || wanted_families+=("$family")
    for name; do
        [[ ${wanted[$family]:= } == *" $name "* ]] || wanted[$family]+="$name "
    done
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

# want_control_plane MINOR [NAME...]: all of it, unless names are given.
want_control_plane() {
    local minor=$1
    shift
    if [[ $minor == "$DEFAULT_KUBERNETES" && -n ${KUBEBUILDER_ASSETS:-} ]]; then
        check_assets
        return
    fi
    want etcd
    (($#)) || set -- "${CONTROL_PLANE[@]}"
    want "kubernetes-$minor" "$@"
}

# What a word of the command line stands for.
want_word() {
    local family
    case $1 in
    all)
        want_control_plane "$DEFAULT_KUBERNETES"
        # Nothing that is tested on another version is the work of its controllers.
        for family in $(minors | grep -vxF "$DEFAULT_KUBERNETES"); do
            want_control_plane "$family" kube-apiserver kubectl
        done
        for family in "${ETCD_MINORS[@]}"; do want "$family"; done
        ;;
    node)
        want_control_plane "$DEFAULT_KUBERNETES"
        want "kubernetes-$DEFAULT_KUBERNETES" "${NODE[@]}"
        want containerd
        want coredns
        ;;
    images)
        for family in $(families | grep '^etcd'); do want "$family"; done
        images_wanted=yes
        ;;
    deploy)
        for family in helm kustomize kubeconform gojq; do want "$family"; done
        schemas_wanted=yes
        ;;
    release) for family in helm kustomize gojq crane cosign; do want "$family"; done ;;
    [0-9]*)
        known "kubernetes-$1"
        want_control_plane "$1"
        ;;
    *)
        known "$1"
        want "$1"
        ;;
    esac
}

# ---- what is there ----

# The version of Go here as one word, or nothing where there is none. It fetches no other unless GOTOOLCHAIN names one.
go_version() {
    [[ -v have_go ]] || {
        have_go=$(cd / && GOTOOLCHAIN=${GOTOOLCHAIN:-local} go env GOVERSION 2>/dev/null) || have_go=
        have_go=${have_go// /,}
    }
    REPLY=$have_go
}

declare -A pins=() # the checksums of every family's sources beside this script, all made at once
pins_of() {
    local sum file family
    if ((${#pins[@]} == 0)); then
        while read -r sum file; do
            family=${file%/*}
            pins[${family##*/}]+="$sum "
        done < <(sha256sum -- "$tools"/*/go.mod "$tools"/*/go.sum "$tools"/*/*.go)
    fi
    REPLY=${pins[$1]}
}

# All that decides what a binary is, but for Go's version, which a stamp has before it.
recipe_of() {
    local family=$1 package=$2 recipe
    pins_of "$family" && recipe=$REPLY
    ldflags_of "$family"
    REPLY="$recipe$package CGO_ENABLED=0 -trimpath -ldflags $REPLY"
}

# Whether a binary is there that was built by this recipe. Where there is no Go, whichever built it is as good.
built() {
    local bin=$1 name=$2 recipe=$3 go stamp
    [[ -x $bin/$name ]] && read -r go stamp 2>/dev/null <"${bin%/bin}/stamps/$name" || return 1
    go_version
    [[ $stamp == "$recipe" && $go == "${REPLY:-$go}" ]]
}

# unbuilt FAMILY: leaves in REPLY those lines of parts_of that are wanted and not built.
unbuilt() {
    local family=$1 bin parts name package seconds lines=
    bin_of "$family" && bin=$REPLY
    parts_of "$family" && parts=$REPLY
    while read -r name package seconds; do
        [[ ${wanted[$family]} == *" $name "* ]] || continue
        recipe_of "$family" "$package"
        built "$bin" "$name" "$REPLY" || lines+="$name $package $seconds"$'\n'
    done <<<"$parts"
    REPLY=${lines%$'\n'}
}

schemas_folder() {
    version_of "kubernetes-$DEFAULT_KUBERNETES"
    REPLY=$cache/kubeconform-schemas-$REPLY
}

images_folder() { REPLY=$cache/images; }

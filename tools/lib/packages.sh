# Sourced by the scripts that install Debian packages. Each says what it `needs`, a package a line with what shows that it
# is there and what asks for it.
# shellcheck shell=bash

# The system's folders are not on everyone's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

present() { if [[ $1 == /* ]]; then [[ -x $1 ]]; else command -v "$1" >/dev/null; fi; }

missing() {
    local package proof why
    while read -r package proof why; do
        present "$proof" || say "$package: $why"
    done < <(needs)
}

install() {
    export DEBIAN_FRONTEND=noninteractive
    say "installing $*"
    # The list of packages is fetched only where what is here does not do.
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || {
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    }
}

# install_missing WHAT INSTALL [ARGUMENT...]: has INSTALL install what is missing of WHAT, or says what that is.
install_missing() {
    local what=$1 install=$2 lines names
    shift 2
    case ${1:-} in
    -h | --help)
        usage "$0"
        return
        ;;
    esac
    lines=$(missing)
    if [[ ${1:-} == --missing ]]; then
        [[ -z $lines ]] || say "$lines"
        return
    fi
    if [[ -z $lines ]]; then
        say "$what are there"
        return
    fi
    mapfile -t names < <(cut -d: -f1 <<<"$lines")
    if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
        sed 's/^/missing: /' <<<"$lines" >&2
        fail "install what is missing (apt-get install --no-install-recommends ${names[*]}), or run this as root on Debian"
    fi
    "$install" "${names[@]}"
    lines=$(missing)
    [[ -z $lines ]] || fail "still missing after installing: $(cut -d: -f1 <<<"$lines" | paste -sd' ')"
}

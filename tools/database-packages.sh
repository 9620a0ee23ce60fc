#!/usr/bin/env bash
# Installs the Debian packages of the databases that the tests of migrations run on, where they are missing.
#
#   tools/database-packages.sh              installs what is missing
#   tools/database-packages.sh --missing    names it, one package a line with what asks for it, and does no more
#
# Starts no service: each run of the tests starts servers of its own, with data in a folder that goes with them. Needs root
# and apt-get to install; elsewhere it names what is missing and fails. Quick when all is there.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

# The system's folders are not on everyone's PATH.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

readonly POLICY=/usr/sbin/policy-rc.d

# Package, what shows that it is there, and what asks for it.
needs() {
    say postgresql-15 /usr/lib/postgresql/15/bin/initdb 'migrations of PostgreSQL are tested on it'
    say mariadb-server-core mariadbd 'migrations of MariaDB are tested on it'
    say mariadb-client-core my_print_defaults 'the tables that MariaDB itself needs are made with it'
    say util-linux setpriv 'neither server runs as root, and each in namespaces of its own'
}

present() { if [[ $1 == /* ]]; then [[ -x $1 ]]; else command -v "$1" >/dev/null; fi; }

missing() {
    local package proof why
    while read -r package proof why; do
        present "$proof" || say "$package: $why"
    done < <(needs)
}

install() {
    local packages=("$@") own_policy=
    export DEBIAN_FRONTEND=noninteractive
    say "installing ${packages[*]}"
    # Debian asks this before a package starts its service.
    if [[ ! -e $POLICY ]]; then
        own_policy=1
        printf '#!/bin/sh\nexit 101\n' >"$POLICY"
        chmod 755 "$POLICY"
    fi
    # The list of packages is fetched only where what is here does not do.
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>&1 || {
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
    } || { [[ -z $own_policy ]] || rm -f -- "$POLICY"; return 1; }
    [[ -z $own_policy ]] || rm -f -- "$POLICY"
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
        say "the packages of the databases are there"
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

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
# shellcheck source=lib/packages.sh
source "$tools/lib/packages.sh"

readonly POLICY=/usr/sbin/policy-rc.d

# Package, what shows that it is there, and what asks for it.
needs() {
    say postgresql-15 /usr/lib/postgresql/15/bin/initdb 'migrations of PostgreSQL are tested on it'
    say mariadb-server-core mariadbd 'migrations of MariaDB are tested on it'
    say mariadb-client-core my_print_defaults 'the tables that MariaDB itself needs are made with it'
    say mariadb-client mariadb-dump 'the scripts of the corpus are compared with what dumps show'
    say sqlite3 sqlite3 'the scripts of the corpus also run in its shell'
    say util-linux setpriv 'neither server runs as root, and each in namespaces of its own'
}

# A package starts its service where nothing forbids it.
without_services() {
    local own_policy='' result=0
    # Debian asks this before a package starts its service.
    if [[ ! -e $POLICY ]]; then
        own_policy=1
        printf '#!/bin/sh\nexit 101\n' >"$POLICY"
        chmod 755 "$POLICY"
    fi
    install "$@" || result=1
    [[ -z $own_policy ]] || rm -f -- "$POLICY"
    return "$result"
}

install_missing 'the packages of the databases' without_services "$@"

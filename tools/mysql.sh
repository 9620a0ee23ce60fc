#!/usr/bin/env bash
# Unpacks the MySQL server and client of Debian unstable into the tools' cache: neither Debian stable nor testing has one.
#
#   tools/mysql.sh            unpacks it, unless it is there; prints the folder
#   tools/mysql.sh --again    takes what unstable has today
#
# Installs nothing and needs no root: the server runs from that folder with the libraries in it, of which the system has
# older ones. Unstable keeps one version only, so that none can be pinned: the tests say which one they ran on.
set -euo pipefail

# shellcheck source=lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"

readonly FOLDER=$cache/mysql KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
readonly PROGRAMS=(usr/sbin/mysqld usr/bin/mysql usr/bin/mysqldump)

# apt-get with lists and packages of its own, that takes nothing of the system for installed.
apt() {
    apt-get -qq -o Dir::State="$1/state" -o Dir::State::status="$1/state/status" -o Dir::Cache="$1/cache" \
        -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User="$(id -un)" "${@:2}"
}

unpack() {
    local building=$cache/.building.mysql package program
    mkdir -p -- "$building"/{state/lists/partial,cache/archives/partial,root}
    : >"$building/state/status"
    say "deb [signed-by=$KEYS] http://deb.debian.org/debian unstable main" >"$building/sources.list"
    apt "$building" update
    apt "$building" install --yes --no-install-recommends --download-only mysql-server-core mysql-client-core \
        >/dev/null
    for package in "$building"/cache/archives/*.deb; do
        # What its scripts need, and none of them runs here.
        [[ ${package##*/} == perl* ]] || dpkg-deb --extract "$package" "$building/root"
    done
    for program in "${PROGRAMS[@]}"; do
        [[ -x $building/root/$program ]] || fail "the packages of Debian unstable have no $program"
    done
    rm -rf -- "$FOLDER"
    mv -- "$building/root" "$FOLDER"
    rm -rf -- "$building"
}

is_whole() {
    local program
    for program in "${PROGRAMS[@]}"; do
        [[ -x $FOLDER/$program ]] || return
    done
}

main() {
    local program
    case ${1:-} in
    -h | --help)
        usage "${BASH_SOURCE[0]}"
        return
        ;;
    esac
    for program in apt-get dpkg-deb; do
        command -v "$program" >/dev/null || fail "$program is missing: a MySQL server is had on Debian only"
    done
    lock
    if [[ ${1:-} == --again ]] || ! is_whole; then
        unpack
    fi
    say "$FOLDER"
}

main "$@"

# Sourced by the scripts that pack files: the same archive for the same content.
# shellcheck shell=bash

# tarball FOLDER SECONDS: a tar file with sorted names, one time and one owner.
tarball() {
    local folder=$1 epoch=$2
    (cd -- "$folder" && find . -mindepth 1 -printf '%P\0' | sort -z) |
        tar --create --format=ustar --directory "$folder" --null --no-recursion --files-from=- \
            --mtime="@$epoch" --owner=0 --group=0 --numeric-owner
}

digest() { sha256sum -- "$1" | cut -d' ' -f1; }

# The architecture of this machine, by its name in images.
architecture() {
    local machine
    machine=$(uname -m)
    case $machine in
    x86_64) printf amd64 ;;
    aarch64) printf arm64 ;;
    *) fail "no image is made on $machine; x86_64 and aarch64 are known" ;;
    esac
}

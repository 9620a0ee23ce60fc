# Sourced by release.sh: what describes the programs. The bill of materials, the licences, and who built from which sources.
# shellcheck shell=bash

# Where a program is that cargo has installed for the Makefile, which this has it do.
cargo_tool() {
    make --no-print-directory --silent "$1" >&2
    make --no-print-directory --silent "where-$1"
}

describe() {
    local architecture
    # In a copy: cargo-cyclonedx writes beside each Cargo.toml.
    mkdir -- "$scratch/sources"
    git archive HEAD | tar --extract --directory "$scratch/sources"
    for architecture in "${architectures[@]}"; do list_crates "$architecture" >"$parts/$architecture.cdx.json"; done
    write_licences
}

# The crates of the program for an architecture, and the C sources that are compiled into it, as CycloneDX.
list_crates() {
    local architecture=$1 target=x86_64-unknown-linux-gnu program crates
    [[ $architecture != arm64 ]] || target=aarch64-unknown-linux-gnu
    program=$(cargo_tool cargo-cyclonedx)
    (cd -- "$scratch/sources" && "$program" cyclonedx --quiet --format json --spec-version 1.5 \
        --target "$target" --no-build-deps --override-filename crates)
    # cargo-cyclonedx also lists crates of features that are not on, as Cargo.lock does.
    crates=$(cargo tree --locked --package gatehouse --edges normal --target "$target" --prefix none --format '{p}' |
        sed 's/ (.*//; s/ v/@/' | sort -u | run gojq --raw-input --slurp --compact-output 'split("\n") | map(select(. != ""))')
    # No path of this machine.
    run gojq --argjson crates "$crates" --argjson parts "$(list_c_parts)" --arg folder "path+file://$scratch/sources" '
        def name: "\(.name)@\(.version)";
        walk(if type == "string" and startswith($folder) then "gatehouse" + .[($folder | length):] else . end)
        | .components |= map(select(name as $name | $crates | index($name)))
        | ($crates - (.components | map(name)) - [.metadata.component | name]) as $missing
        | if $missing != [] then error("not listed: \($missing)") else . end
        | ([.components[]."bom-ref"] + [.metadata.component."bom-ref"]) as $listed
        | .dependencies |= map(select(.ref as $ref | $listed | index($ref)) | .dependsOn |= ((. // []) - ((. // []) - $listed)))
        | .components += $parts
        | .components |= sort_by(.purl)' "$scratch/sources/crates.json"
}

# What cargo knows nothing of: C sources that crates bring, and the C library of the machine that builds.
list_c_parts() {
    local sqlite jemalloc aws_lc glibc
    sqlite=$(sed -n 's/^#define SQLITE_VERSION  *"\(.*\)"/\1/p' "$(crate_folder libsqlite3-sys)/sqlite3/sqlite3.h")
    # The crate's own version has that of its sources behind a plus.
    jemalloc=$(crate_folder tikv-jemalloc-sys)
    jemalloc=${jemalloc##*+}
    aws_lc=$(sed -n 's/^#define AWSLC_VERSION_NUMBER_STRING "\(.*\)"/\1/p' "$(crate_folder aws-lc-sys)/aws-lc/include/openssl/base.h")
    glibc=$(getconf GNU_LIBC_VERSION)
    run gojq --null-input --compact-output --arg sqlite "$sqlite" --arg jemalloc "$jemalloc" --arg awslc "$aws_lc" --arg glibc "${glibc#glibc }" '
        def part($name; $version; $licence; $purl):
            if $version == "" then error("the version of \($name) is not known") else
            { type: "library", "bom-ref": $purl, name: $name, version: $version, scope: "required",
              licenses: [{ expression: $licence }], purl: $purl } end;
        [ part("sqlite"; $sqlite; "blessing"; "pkg:generic/sqlite@" + $sqlite),
          part("jemalloc"; $jemalloc; "BSD-2-Clause"; "pkg:github/jemalloc/jemalloc@" + $jemalloc),
          part("aws-lc"; $awslc; "ISC AND (Apache-2.0 OR ISC)"; "pkg:github/aws/aws-lc@v" + $awslc),
          part("glibc"; $glibc; "LGPL-2.1-or-later"; "pkg:generic/glibc@" + $glibc) ]'
}

# Where cargo keeps the sources of a crate.
crate_folder() {
    [[ -f $scratch/metadata.json ]] || cargo metadata --locked --format-version 1 >"$scratch/metadata.json"
    REPLY=$(run gojq -r --arg name "$1" '[.packages[] | select(.name == $name)][0].manifest_path' "$scratch/metadata.json")
    printf '%s' "${REPLY%/Cargo.toml}"
}

# The licence texts of all crates.
write_licences() {
    local program
    program=$(cargo_tool cargo-about)
    (cd -- "$scratch/sources" && "$program" generate --locked --fail --config tools/lib/release/about.toml \
        tools/lib/release/licences.hbs) >"$parts/licences.txt"
}

# The provenance of all files, as a statement of in-toto.
write_provenance() {
    local subjects
    subjects=$(run gojq --raw-input --slurp --compact-output '
        split("\n") | map(select(. != "") | split("  ") | { name: .[1], digest: { sha256: .[0] } })' "$files/SHA256SUMS")
    run gojq --null-input --argjson subjects "$subjects" --arg version "$version" --arg registry "$registry" \
        --arg architectures "${architectures[*]}" --arg revision "$revision" --arg epoch "$SOURCE_DATE_EPOCH" \
        --arg image "$registry/gatehouse" --arg digest "${image_digest#sha256:}" --arg lock "$(digest Cargo.lock)" \
        --arg rust "$(rustc --version)" --arg builder "${BUILDER:-https://gatehouse.dev/release/by-hand}" '{
        _type: "https://in-toto.io/Statement/v1",
        subject: ($subjects + [{ name: $image, digest: { sha256: $digest } }]),
        predicateType: "https://slsa.dev/provenance/v1",
        predicate: {
            buildDefinition: {
                buildType: "https://gatehouse.dev/release/v1",
                externalParameters: { version: $version, registry: $registry, architectures: ($architectures / " ") },
                internalParameters: { sourceDateEpoch: $epoch, rustc: $rust },
                resolvedDependencies: [
                    { name: "sources", digest: { gitCommit: $revision } },
                    { name: "Cargo.lock", digest: { sha256: $lock } }
                ]
            },
            runDetails: { builder: { id: $builder } }
        } }' >"$files/provenance.json"
}

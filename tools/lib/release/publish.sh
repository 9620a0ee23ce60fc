# Sourced by release.sh: pushes the image and the chart, and signs them and the sums.
# shellcheck shell=bash

# A registry on this machine is spoken to without TLS.
plain_http() { [[ $registry =~ ^(localhost|127\.0\.0\.1)(:|/) ]]; }

# cosign COMMAND ARGUMENT...: with the key, or with the identity of the CI that runs this.
cosign_with() {
    local command=$1 options=(--yes)
    shift
    if [[ $KEY != keyless ]]; then
        # The signature by a key needs no log and no authority of others: these files name none.
        options+=(--key "$KEY" --signing-config "$tools/lib/release/signing-config.json"
            --trusted-root "$tools/lib/release/trusted-root.json")
    fi
    if [[ $command != sign-blob ]] && plain_http; then options+=(--allow-http-registry); fi
    run cosign "$command" "${options[@]}" "$@"
}

push_image() {
    local archive=$files/gatehouse-$version-image.tar pushed insecure=()
    ! plain_http || insecure=(--insecure)
    mkdir -- "$scratch/layout"
    tar --extract --directory "$scratch/layout" --file "$archive"
    run crane push "${insecure[@]}" "$scratch/layout" "$registry/gatehouse:$version" >/dev/null 2>&1 ||
        fail "crane does not push $archive to $registry"
    pushed=$(run crane digest "${insecure[@]}" "$registry/gatehouse:$version")
    image_digest=$(run gojq -r '.manifests[0].digest' "$scratch/layout/index.json")
    [[ $pushed == "$image_digest" ]] || fail "the registry has $pushed as gatehouse:$version, and not $image_digest"
    say "pushed: $registry/gatehouse@$image_digest"
}

# The file beside the chart that `helm pull --verify` reads.
sign_chart() {
    local chart=$1
    {
        run helm show chart "$chart"
        printf '\n...\nfiles:\n  %s: sha256:%s\n' "${chart##*/}" "$(digest "$chart")"
    } | gpg --batch --yes --local-user "$CHART_KEY" --armor --clear-sign --output "$chart.prov"
}

# Leaves the digest of the chart in `chart_digest`.
chart_digest=
push_chart() {
    local chart=$files/gatehouse-$version.tgz plain=() insecure=()
    ! plain_http || plain=(--plain-http) insecure=(--insecure)
    [[ -z ${CHART_KEY:-} ]] || sign_chart "$chart"
    # helm writes this time into the manifest.
    touch -d "@$SOURCE_DATE_EPOCH" -- "$chart"
    TZ=UTC run helm push "${plain[@]}" "$chart" "oci://$registry/charts" >/dev/null 2>&1 || fail "helm does not push $chart"
    chart_digest=$(run crane digest "${insecure[@]}" "$registry/charts/gatehouse:$version")
    say "pushed: $registry/charts/gatehouse@$chart_digest"
}

# The bills of materials and the provenance, as attestations of the image.
attest() {
    local architecture image=$registry/gatehouse insecure=() sum
    ! plain_http || insecure=(--insecure)
    run gojq .predicate "$files/provenance.json" >"$scratch/predicate.json"
    cosign_with attest --type slsaprovenance1 --predicate "$scratch/predicate.json" "$image@$image_digest"
    for architecture in "${architectures[@]}"; do
        [[ -f $files/gatehouse-$version-linux-$architecture.cdx.json ]] || continue
        sum=$(run crane digest "${insecure[@]}" --platform "linux/$architecture" "$image@$image_digest")
        cosign_with attest --type cyclonedx --predicate "$files/gatehouse-$version-linux-$architecture.cdx.json" "$image@$sum"
    done
}

publish() {
    [[ -f $files/SHA256SUMS ]] || fail "there is no $files/SHA256SUMS; run $0 make"
    [[ -n ${KEY:-} ]] || fail "the key is wanted: KEY=cosign.key, or KEY=keyless where a CI has an identity; docs/releasing.md says more"
    (cd -- "$files" && sha256sum --quiet --check SHA256SUMS) || fail "files were changed after they were packed"
    cosign_with sign-blob --bundle "$files/SHA256SUMS.sigstore.json" "$files/SHA256SUMS" >/dev/null
    cosign_with sign-blob --bundle "$files/provenance.json.sigstore.json" "$files/provenance.json" >/dev/null
    push_image
    push_chart
    cosign_with sign --recursive "$registry/gatehouse@$image_digest"
    cosign_with sign "$registry/charts/gatehouse@$chart_digest"
    attest
    say "published and signed: gatehouse $version; the files for users are in $files"
}

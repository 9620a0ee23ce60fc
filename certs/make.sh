#!/usr/bin/env bash
# Development certificates: an authority, and a leaf for this machine.
set -euo pipefail
cd "$(dirname -- "${BASH_SOURCE[0]}")"
command -v openssl >/dev/null || { echo "error: openssl is missing: install the package openssl" >&2; exit 1; }
umask 077
openssl ecparam -genkey -name prime256v1 -noout -out ca.key
openssl req -x509 -new -key ca.key -subj "/CN=gatehouse development" -days 30 -out ca.crt
openssl ecparam -genkey -name prime256v1 -noout | openssl pkcs8 -topk8 -nocrypt -out tls.key
openssl req -new -key tls.key -subj "/CN=localhost" |
    openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -out tls.crt \
        -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n')
printf '%s\n' "$PWD"/{ca.crt,tls.crt,tls.key}

#!/bin/sh
# Makes the certificates beside this script anew, valid from 2020 to 2120: an authority that no system
# knows, and certificates of it for 127.0.0.1 and for another name. The keys are for tests on loopback
# and protect nothing.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index"
echo 01 >"$work/serial"
cat >"$work/config" <<END
[ca]
default_ca = test
[test]
database = $work/index
serial = $work/serial
new_certs_dir = $work
default_md = sha256
default_startdate = 20200101000000Z
default_enddate = 21200101000000Z
policy = anything
email_in_dn = no
[anything]
commonName = supplied
[req]
distinguished_name = names
[names]
[authority]
basicConstraints = critical,CA:TRUE
subjectKeyIdentifier = hash
[loopback]
basicConstraints = critical,CA:FALSE
subjectAltName = IP:127.0.0.1,DNS:localhost
[elsewhere]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:elsewhere.example
END
for name in authority loopback elsewhere; do
    case $name in
    authority) signer="-selfsign" ;;
    *) signer="-cert authority.pem" ;;
    esac
    openssl req -config "$work/config" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -subj "/CN=ccb test $name" -keyout "$work/$name.key" -out "$work/$name.csr"
    openssl ca -config "$work/config" -batch -notext -extensions "$name" $signer \
        -keyfile "$work/authority.key" -in "$work/$name.csr" -out "$name.pem"
done
# The authority's key is gone with this script: it signs nothing else.
cp "$work/loopback.key" "$work/elsewhere.key" .
chmod 644 ./*.key

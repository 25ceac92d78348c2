#!/bin/sh
# Creates the certificates and the tokens with which the services of docker-compose.yml authenticate each other, in the folder deploy/private or
# in $BERTH_PRIVATE. It is safe to run this script again: it keeps the certificate authorities and the key of the tokens, and renews the
# certificates and the tokens. Create the services again afterwards: docker compose up --force-recreate. The arguments are further names and
# addresses of the RabbitMQ broker, under which agents on other machines reach it. With --new-authorities as the first argument, it creates
# authorities and a key that are missing although certificates or tokens of the former ones exist.
set -eu
umask 077
replace=
if [ "${1:-}" = --new-authorities ]; then
	replace=yes
	shift
fi
days=825 # how long certificates and tokens are valid
private=${BERTH_PRIVATE:-"$(dirname "$0")/private"}
mkdir -p "$private"
# The folder contains keys and passwords. Docker Compose makes a missing folder that every user can open.
case $(ls -ld "$private") in
drwx------*) ;;
*) echo "certificates.sh: other users can open $private, which will contain keys: chmod 700 $private" >&2 && exit 1 ;;
esac

# require NAME FILE: ends the script if the file NAME of the authorities is missing although a service has the FILE that belongs to it.
require() {
	[ -z "$replace" ] && [ ! -e "$private/authorities/$1" ] || return 0
	for used in "$private"/*/"$2"; do
		[ ! -e "$used" ] || {
			echo "certificates.sh: $private/authorities/$1 is missing, but $used belongs to it: move the folder authorities back, or run certificates.sh --new-authorities, create all services again, and copy the new rabbitmq-ca.pem to the agents" >&2
			exit 1
		}
	done
}

for name in temporal-servers temporal-clients rabbitmq postgres; do
	require "$name.pem" "$name-ca.pem"
done
require tokens.key tokens.json
mkdir -p "$private/authorities"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# generate COMMON-NAME KEY OUT [OPTION…]: creates a key, and a request or a certificate.
generate() {
	printf '[req]\nprompt = no\ndistinguished_name = name\n[name]\nCN = %s\n' "$1" >"$work/config"
	printf '[authority]\nbasicConstraints = critical, CA:TRUE, pathlen:0\nkeyUsage = critical, keyCertSign, cRLSign\nsubjectKeyIdentifier = hash\n' >>"$work/config"
	config=$work/config key=$2 out=$3
	shift 3
	openssl req -new -config "$config" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -keyout "$key" -out "$out" "$@" 2>"$work/log" ||
		{ cat "$work/log" >&2 && exit 1; }
}

# authority NAME: creates a certificate authority unless it exists.
authority() {
	if [ ! -e "$private/authorities/$1.pem" ]; then
		generate "berth $1" "$private/authorities/$1.key" "$private/authorities/$1.pem" -x509 -extensions authority -days 3650
	fi
}

# trust FOLDER NAME: lets the service with the folder trust a certificate authority.
trust() {
	publish "$1" "$2-ca.pem" "$private/authorities/$2.pem"
}

# certificate FOLDER NAME USAGE ALTERNATIVE-NAMES: creates a certificate of the authority NAME for the service with the folder.
certificate() {
	generate "$1" "$work/key" "$work/request"
	printf 'basicConstraints = critical, CA:FALSE\nkeyUsage = critical, digitalSignature\nextendedKeyUsage = %s\nsubjectAltName = %s\n' "$3" "$4" >"$work/extensions"
	openssl x509 -req -in "$work/request" -CA "$private/authorities/$2.pem" -CAkey "$private/authorities/$2.key" \
		-set_serial "0x$(openssl rand -hex 16)" -days "$days" -sha256 -extfile "$work/extensions" -out "$work/certificate" 2>"$work/log" ||
		{ cat "$work/log" >&2 && exit 1; }
	publish "$1" certificate.pem "$work/certificate"
	publish "$1" key.pem "$work/key"
}

# publish FOLDER FILE SOURCE: copies a file into the folder that one service mounts. The processes in containers have other user IDs than
# the owner of the file, so the file is readable for all; only the owner can open the folder above.
publish() {
	mkdir -p "$private/$1"
	chmod 755 "$private/$1"
	cp "$3" "$private/$1/$2.new"
	chmod 644 "$private/$1/$2.new"
	mv "$private/$1/$2.new" "$private/$1/$2"
}

base64url() {
	openssl base64 -A | tr '+/' '-_' | tr -d '='
}

# publish_key FOLDER: writes the public key of the tokens into the folder, as a JSON Web Key Set.
publish_key() {
	modulus=$(openssl rsa -in "$private/authorities/tokens.key" -noout -modulus | sed 's/Modulus=//; s/../& /g')
	modulus=$(for byte in $modulus; do printf "\\$(printf %03o "0x$byte")"; done | base64url)
	printf '{"keys": [{"kty": "RSA", "kid": "berth", "use": "sig", "alg": "RS256", "n": "%s", "e": "AQAB"}]}\n' "$modulus" >"$work/tokens.json"
	publish "$1" tokens.json "$work/tokens.json"
}

# token FOLDER PERMISSION: creates a JSON Web Token with which the service with the folder has a permission in Temporal. The token is in a
# file with settings of Temporal's clients, which TEMPORAL_CONFIG_FILE names.
token() {
	header=$(printf '{"alg":"RS256","typ":"JWT","kid":"berth"}' | base64url)
	claims=$(printf '{"sub":"%s","permissions":["%s"],"exp":%s}' "$1" "$2" $(($(date +%s) + days * 86400)) | base64url)
	signature=$(printf %s "$header.$claims" | openssl dgst -sha256 -sign "$private/authorities/tokens.key" -binary | base64url)
	printf '[profile.default]\napi_key = "%s"\n' "$header.$claims.$signature" >"$work/temporal.toml"
	publish "$1" temporal.toml "$work/temporal.toml"
	rm -f "$private/$1/temporal.env" # of a previous version of this script
}

brokers=DNS:rabbitmq,DNS:localhost,IP:127.0.0.1
for name in "$@"; do
	case $name in
	*[!0-9.]*) brokers=$brokers,DNS:$name ;;
	*) brokers=$brokers,IP:$name ;;
	esac
done

authority temporal-servers
authority temporal-clients
authority rabbitmq
authority postgres
certificate temporal temporal-servers serverAuth,clientAuth DNS:temporal,DNS:localhost,IP:127.0.0.1
trust temporal temporal-servers
trust temporal temporal-clients
for client in api worker operator ui; do
	certificate "$client" temporal-clients clientAuth "DNS:$client"
	trust "$client" temporal-servers
done
if [ ! -e "$private/authorities/tokens.key" ]; then
	openssl genrsa -out "$private/authorities/tokens.key" 2048 2>/dev/null
fi
publish_key temporal
token api berth:read
token worker berth:admin
token operator temporal-system:admin
certificate rabbitmq rabbitmq serverAuth "$brokers"
for client in rabbitmq api worker rpc agents; do
	trust "$client" rabbitmq
done
certificate postgres postgres serverAuth DNS:postgres,DNS:localhost,IP:127.0.0.1
for client in temporal temporal-schema migrate api worker rpc; do
	trust "$client" postgres
done
echo "certificates.sh: wrote the certificates and tokens into $private"

#!/bin/sh
# Creates the files with the secrets of docker-compose.yml in the folder deploy/private/secrets or in $BERTH_PRIVATE/secrets. It is safe to
# run this script again: it keeps the secrets that exist. The script chooses the passwords of this deployment's own services, unless the
# environment has them (see choose). It asks for the passwords of other services, unless the environment has them (see ask).
set -eu
umask 077
private=${BERTH_PRIVATE:-"$(dirname "$0")/private"}
secrets=$private/secrets
# The group whose members can read the files. docker-compose.yml gives the containers this group, because their users are not the owner.
if [ "$(id -u)" = 0 ]; then group=${SECRETS_GROUP:-65532}; else group=${SECRETS_GROUP:-$(id -g)}; fi

fail() {
	echo "secrets.sh: $1" >&2
	exit 1
}

mkdir -p "$private"
# The folder contains keys and passwords. Docker Compose makes a missing folder that every user can open.
case $(ls -ld "$private") in
drwx------*) ;;
*) fail "other users can open $private, which will contain secrets: chmod 700 $private" ;;
esac
mkdir -p "$secrets"

# write FILE VALUE: writes a file that its owner and the group can read.
write() {
	printf '%s\n' "$2" >"$secrets/$1.new"
	chgrp "$group" "$secrets/$1.new"
	chmod 640 "$secrets/$1.new"
	mv "$secrets/$1.new" "$secrets/$1"
}

# keep FILE VALUE VARIABLE: writes a file unless it exists, and gives an existing file its group and its mode. It says whether the value is
# the one of the variable, because the environment can contain the password of another user.
keep() {
	if [ -s "$secrets/$1" ]; then
		write "$1" "$(cat "$secrets/$1")"
	else
		write "$1" "$2"
		[ -z "$(printenv "$3")" ] || echo "secrets.sh: $secrets/$1 has the value of $3"
	fi
}

# choose FILE VARIABLE: keeps the password, or takes it from the variable, or chooses one.
choose() {
	value=$(printenv "$2" || true)
	keep "$1" "${value:-$(openssl rand -hex 24)}" "$2"
}

# ask FILE VARIABLE DESCRIPTION: keeps the password, or takes it from the variable, or asks for it at the terminal.
ask() {
	value=$(printenv "$2" || true)
	if [ ! -s "$secrets/$1" ] && [ -z "$value" ]; then
		[ -t 0 ] || fail "$3: write it into $secrets/$1, set $2, or run this script at a terminal"
		printf '%s: ' "$3" >&2
		trap 'stty echo' EXIT
		stty -echo
		IFS= read -r value
		stty echo
		trap - EXIT
		echo >&2
		[ -n "$value" ] || fail "$3: it is empty"
	fi
	keep "$1" "$value" "$2"
}

# encoded FILE: prints the secret of a file in the form of a URL.
encoded() {
	tr -d '\n' <"$secrets/$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'
}

choose postgres_password POSTGRES_PASSWORD
choose database_password_berth DATABASE_PASSWORD_BERTH
choose database_password_temporal DATABASE_PASSWORD_TEMPORAL
choose rabbitmq_password RABBITMQ_PASSWORD
ask keystone_password OS_PASSWORD "Password of berth's service user at Keystone"
ask odl_password BERTH_ODL_PASSWORD "Password of berth's user at OpenDaylight"
if [ -n "${TEMPORAL_UI_CLIENT_SECRET:-}" ] || [ -s "$secrets/temporal_ui_client_secret" ]; then
	keep temporal_ui_client_secret "${TEMPORAL_UI_CLIENT_SECRET:-}" TEMPORAL_UI_CLIENT_SECRET
fi

# The forms in which the services need these passwords.
case $(cat "$secrets/rabbitmq_password") in
*[!A-Za-z0-9]*) fail "$secrets/rabbitmq_password: RabbitMQ's settings need a password of letters and digits only" ;;
esac
write database_url "postgres://berth:$(encoded database_password_berth)@postgres:5432/berth"
write rabbitmq_url "amqps://berth:$(encoded rabbitmq_password)@rabbitmq:5671/"
write rabbitmq_settings "default_user = berth
default_pass = $(cat "$secrets/rabbitmq_password")"
echo "secrets.sh: wrote the secrets into $secrets"
[ "$group" = 65532 ] || echo "secrets.sh: set SECRETS_GROUP=$group in .env"

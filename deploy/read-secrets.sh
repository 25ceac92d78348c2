#!/bin/sh
# Runs a program that takes its secrets only from the environment: read-secrets.sh NAME… -- COMMAND. For each NAME, the variable NAME_FILE
# names the file with the secret. Only the process of the program and its children get the secrets, not the configuration of the container.
set -eu

while [ "$1" != -- ]; do
	file=$(printenv "$1_FILE") || { echo "read-secrets.sh: $1_FILE is not set" >&2 && exit 1; }
	value=$(cat "$file")
	[ -n "$value" ] || { echo "read-secrets.sh: $1_FILE: the file $file is empty" >&2 && exit 1; }
	export "$1=$value"
	shift
done
shift
exec "$@"

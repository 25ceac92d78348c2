#!/bin/sh
# Runs PostgreSQL with TLS; the arguments are further options of the server. PostgreSQL accepts its key only in a file of its own user with
# the mode 600, so the script copies the key into the memory of the container.
set -eu

install -m 600 /etc/postgresql/private/key.pem /tmp/key.pem
exec docker-entrypoint.sh postgres -c ssl=on -c ssl_cert_file=/etc/postgresql/private/certificate.pem -c ssl_key_file=/tmp/key.pem \
	-c hba_file=/deploy/pg_hba.conf "$@"

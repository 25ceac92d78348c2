#!/bin/sh
# Tries the path of docs/install.md from nothing: installs the Debian packages of a release in a new Debian root, starts two services with the
# commands and the settings of their units, runs the demo, upgrades to a second version while clients write, goes back, makes a backup,
# restores it, removes and purges the packages. PostgreSQL and Temporal run beside the root on free ports. Prints each step and its result.
#   tools/install-test.sh OLD NEW
# OLD and NEW are folders with the Debian packages of two releases for this machine's architecture. The script runs as root, and needs
# mmdebstrap, curl, python3, the server of PostgreSQL, and the temporal command line (tools/temporal.sh).
set -eu
[ $# = 2 ] || {
	echo "usage: tools/install-test.sh OLD NEW" >&2
	exit 2
}
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd)
tools=$(cd "$(dirname "$0")" && pwd)
temporal=$("$tools/temporal.sh")
postgres=$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb | tail -1)")

chroot=$(command -v chroot)

step() { echo "== $*"; }
fail() {
	echo "install-test: $*" >&2
	exit 1
}
services="" server=""
# stop PID…: ends processes and waits for their end.
stop() {
	for pid; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}
# as_postgres COMMAND…: runs a command as the user postgres.
as_postgres() { setpriv --reuid postgres --regid postgres --clear-groups env -C / "$@"; }
cleanup() {
	# shellcheck disable=SC2086 # lists of processes
	stop $services $server
	as_postgres "$postgres/pg_ctl" -D "$work/postgres" -m immediate stop >/dev/null 2>&1 || true
	umount "$root/proc" 2>/dev/null || true
	rm -rf "$work"
}
work=$(mktemp -d)
root=$work/root
trap cleanup EXIT
trap 'exit 130' INT TERM

# demo runs the demo, and prints its last lines.
demo() {
	starter demo >"$work/demo" 2>&1 || {
		cat "$work/demo" >&2
		fail "the demo has failed"
	}
	tail -n 3 "$work/demo"
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# until_ok COMMAND…: repeats a command until it succeeds, for at most ten minutes.
until_ok() {
	attempt=0
	until "$@" >"$work/attempt" 2>&1; do
		attempt=$((attempt + 1))
		for pid in $services; do
			kill -0 "$pid" 2>/dev/null || {
				tail -n 5 "$work"/*.log >&2
				fail "a service has ended"
			}
		done
		[ "$attempt" -lt 600 ] || {
			cat "$work/attempt" >&2
			fail "after 600 attempts: $*"
		}
		sleep 1
	done
}
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive "$@"; }
starter() { inside env BERTH_URL="http://127.0.0.1:$api" starter "$@"; }
# content: lists the files of the root, except the logs and the caches of Debian's package manager, temporary files, and the lock and the
# backups of adduser.
content() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./run/adduser -o -path './etc/*-' \) -prune -o -print | sort)
}
# service NAME: becomes the command of a unit with the settings of its environment files and the user berth, as systemd starts it.
service() {
	unit=$root/usr/lib/systemd/system/berth-$1.service
	settings="HOME=/nonexistent USER=berth PATH=/usr/bin:/bin"
	for file in $(sed -n 's/^EnvironmentFile=//p' "$unit"); do
		while IFS= read -r line; do
			case $line in '' | '#'*) ;; *) settings="$settings $line" ;; esac
		done <"$root$file"
	done
	# shellcheck disable=SC2046,SC2086 # the words of the command and the settings, which contain no spaces
	exec env -i $settings "$chroot" --userspec=berth:berth "$root" $(sed -n 's/^ExecStart=//p' "$unit")
}
# serves PORT: succeeds if the process at a port is ready and has the version of the installed package.
serves() {
	inside env BERTH_URL="http://127.0.0.1:$1" starter probe --ready &&
		curl -fsS "http://127.0.0.1:$1/healthz" | grep -F "\"$(inside berth-worker --version | sed -n '1s/^worker //p')\""
}
# start: starts the two services after the migration, as the units do.
start() {
	(service migrate)
	service api >>"$work/api.log" 2>&1 &
	services=$!
	service worker >>"$work/worker.log" 2>&1 &
	services="$services $!"
	until_ok serves "$api"
	until_ok serves "$worker"
}
# install FOLDER: installs the packages of a release, and starts the services again, as the units and the package do.
install() {
	rm -rf "$root/tmp/release"
	mkdir "$root/tmp/release"
	cp "$1"/*.deb "$root/tmp/release"
	inside sh -c 'cd /tmp/release && apt-get install -q -y --allow-downgrades ./berth_*_*.deb ./berth-cli_*_*.deb' >"$work/apt" 2>&1 || {
		cat "$work/apt" >&2
		fail "the installation of $1 failed"
	}
	inside berth-worker --version | head -1
}
# write: creates networks until the file $work/writing is gone, and records each acknowledged one.
write() {
	n=0
	while [ -e "$work/writing" ]; do
		n=$((n + 1))
		if starter network create "load-$1-$n" >/dev/null 2>&1; then echo "load-$1-$n" >>"$work/acknowledged"; fi
	done
}
# replace FOLDER NAME: installs another version and restarts the services while a client writes.
replace() {
	touch "$work/writing"
	write "$2" &
	writer=$!
	install "$1"
	# shellcheck disable=SC2086 # a list of processes
	stop $services
	start
	rm "$work/writing"
	wait "$writer"
	check_acknowledged
}
check_acknowledged() {
	starter network list -o csv -c name >"$work/networks"
	sort "$work/networks" >"$work/networks.sorted"
	lost=$(sort "$work/acknowledged" | comm -23 - "$work/networks.sorted")
	[ -z "$lost" ] || fail "acknowledged networks are lost: $lost"
	echo "$(wc -l <"$work/acknowledged") acknowledged networks, none lost"
}

step "a new Debian root"
mmdebstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$work/mmdebstrap" 2>&1 || {
	cat "$work/mmdebstrap" >&2
	fail "mmdebstrap failed"
}
mount -t proc proc "$root/proc"
inside apt-get update -q >/dev/null
content >"$work/before"

step "PostgreSQL and Temporal beside it"
database=$(free_port) frontend=$(free_port) api=$(free_port) worker=$(free_port)
chmod 755 "$work"
mkdir "$work/postgres" && chown postgres "$work/postgres"
# Other users of the machine can connect to the port, so each role needs a password there.
as_postgres "$postgres/initdb" -D "$work/postgres" --auth-local=peer --auth-host=scram-sha-256 >/dev/null
as_postgres "$postgres/pg_ctl" -D "$work/postgres" -w -o "-p $database -k $work/postgres" -l "$work/postgres/log" start >/dev/null
PGPASSWORD=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export PGPASSWORD
echo "create role berth login password '$PGPASSWORD'" | as_postgres "$postgres/psql" -q -h "$work/postgres" -p "$database"
as_postgres "$postgres/createdb" -h "$work/postgres" -p "$database" --owner berth berth
"$temporal" server start-dev --headless --port "$frontend" --db-filename "$work/temporal.db" >"$work/temporal.log" 2>&1 &
server=$!
export TEMPORAL_ADDRESS="127.0.0.1:$frontend" TEMPORAL_NAMESPACE=berth

step "installation"
install "$old"
[ "$(stat -c %a "$root/etc/berth/berth.env")" = 600 ] || fail "other users can read /etc/berth/berth.env"
sed -i -e "s|^BERTH_DATABASE_URL=.*|BERTH_DATABASE_URL=postgres://berth@127.0.0.1:$database/berth|" -e "s|^TEMPORAL_ADDRESS=.*|TEMPORAL_ADDRESS=$TEMPORAL_ADDRESS|" \
	-e "s|^PGPASSWORD=.*|PGPASSWORD=$PGPASSWORD|" -e 's|^BERTH_AUTH=.*|BERTH_AUTH=noauth|' "$root/etc/berth/berth.env"
echo BERTH_QUOTA=off >>"$root/etc/berth/berth.env" # the client that writes creates many networks
sed -i "s|^BERTH_LISTEN=.*|BERTH_LISTEN=127.0.0.1:$api|" "$root/etc/berth/api.env"
sed -i "s|^BERTH_LISTEN=.*|BERTH_LISTEN=127.0.0.1:$worker|" "$root/etc/berth/worker.env"
PATH="$(dirname "$temporal"):$PATH" "$root/usr/share/berth/temporal-namespace.sh" >"$work/namespace"
start
starter doctor || fail "starter doctor finds faults"

step "the demo"
demo

step "upgrade under load"
replace "$new" up
step "back to the previous version under load"
replace "$old" down

step "backup and restore"
as_postgres "$postgres/pg_dump" -h "$work/postgres" -p "$database" -Fc berth >"$work/berth.dump"
starter network create after-the-backup >/dev/null
"$postgres/pg_restore" -h 127.0.0.1 -p "$database" -U berth -d berth --clean --if-exists --single-transaction "$work/berth.dump"
until_ok serves "$api"
check_acknowledged
if starter network show after-the-backup >/dev/null 2>&1; then fail "the restored database has a network that was created after the backup"; fi
demo

step "removal"
# shellcheck disable=SC2086 # a list of processes
stop $services
services=""
inside apt-get remove -q -y berth berth-cli >/dev/null 2>&1
[ -e "$root/etc/berth/berth.env" ] || fail "the removal has deleted the settings"
inside apt-get purge -q -y berth berth-cli >/dev/null 2>&1
inside apt-get autoremove -q -y --purge >/dev/null 2>&1
content >"$work/after"
left=$(comm -13 "$work/before" "$work/after")
[ -z "$left" ] || fail "files after the purge: $left"
echo "no file is left; of the users, $(grep -c '^berth:' "$root/etc/passwd") stays: berth"

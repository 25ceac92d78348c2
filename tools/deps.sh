#!/bin/sh
# Installs the packages that the tests need on a clean Debian machine: a C compiler for the race detector, PostgreSQL, PgBouncer, RabbitMQ, OpenSSL,
# the OpenStack clients, oslo.messaging, Neutron's agents, Prometheus, Python's venv for the test suites, Maven and a JDK for OpenDaylight's Neutron
# northbound, Chromium for the console, and systemd-analyze for the services of the package.
#   tools/deps.sh [PROGRAM]…
# Each PROGRAM is a further program that is needed; its package has the same name.
set -eu

root=""
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
	root=yes
fi
here=${0%/*}

missing=""
command -v cc >/dev/null 2>&1 || missing="$missing gcc"
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing="$missing rabbitmq-server"
/usr/bin/python3 -c "import oslo_messaging" 2>/dev/null || missing="$missing python3-oslo.messaging"
python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3-venv"
[ -x /usr/sbin/pgbouncer ] || missing="$missing pgbouncer"
command -v openssl >/dev/null 2>&1 || missing="$missing openssl"
command -v mvn >/dev/null 2>&1 || missing="$missing maven"
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
command -v javac >/dev/null 2>&1 || missing="$missing default-jdk-headless"
command -v systemd-analyze >/dev/null 2>&1 || missing="$missing systemd"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
for program; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
# Without root, the tests download PostgreSQL themselves, and the clients are installed in the user's cache.
if [ -n "$root" ]; then
	if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
		missing="$missing postgresql"
	fi
	"$here/openstack.sh" -n >/dev/null || missing="$missing python3-openstackclient python3-osc-placement python3-blazarclient"
else
	"$here/openstack.sh" >/dev/null
fi
install() {
	if [ -z "$root" ]; then
		echo "missing packages:$missing; install them, or run make deps as root on Debian" >&2
		exit 1
	fi
	echo "installing$missing"
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	# Prevent the packages pgbouncer, rabbitmq-server and prometheus from starting a server; the tests start their own.
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f "$log" /usr/sbin/policy-rc.d' EXIT
	fi
	# Prevent the package postgresql from creating and starting a cluster; the tests start their own.
	mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
	# shellcheck disable=SC2086 # a list of packages
	if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
}

[ -z "$missing" ] || install
"$here/opendaylight.sh" >/dev/null
# agents.sh runs last, because it downloads only those packages that are not installed.
"$here/agents.sh" >/dev/null

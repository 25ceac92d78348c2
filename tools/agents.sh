#!/bin/sh
# Prints the root folder of Debian's Neutron agents and Open vSwitch, which the tests run unchanged: / if they are installed,
# otherwise a folder in the user's cache. The script fills that once with the missing packages. It unpacks them and installs
# nothing: no service starts, no account is created, and no root privileges are needed.
set -eu
cd "$(dirname "$0")"

packages="neutron-dhcp-agent neutron-openvswitch-agent openvswitch-switch"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth/agents-$(cksum <agents.sh | tr ' ' -)

has_agents() {
	[ -x "$1/usr/bin/neutron-dhcp-agent" ] && [ -x "$1/usr/bin/neutron-openvswitch-agent" ] && [ -x "$1/usr/sbin/ovsdb-server" ]
}

if has_agents ""; then
	echo /
	exit
elif has_agents "$cache"; then
	echo "$cache"
	exit
fi

if ! command -v apt-get >/dev/null 2>&1; then
	echo "no apt-get on this machine; install Neutron's DHCP agent, its Open vSwitch agent and Open vSwitch" >&2
	exit 1
fi
echo "unpacking Neutron's agents into $cache" >&2
mkdir -p "${cache%/*}"
# Fill a temporary folder and rename it at the end: another run may do the same now.
fresh=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/tree" "$fresh/packages" "$fresh/lists/partial" "$fresh/apt/archives/partial"

# download_packages downloads the packages and their missing dependencies. It checks every command itself, because `set -e` has no
# effect in a condition.
download_packages() {
	# shellcheck disable=SC2086 # a list of packages
	plan=$(apt-get -q -s -o Debug::NoLocking=1 "$@" install --no-install-recommends $packages) || return 1
	list=$( (echo "$packages" | tr ' ' '\n'; echo "$plan" | awk '/^Inst / { print $2 }') | sort -u)
	# shellcheck disable=SC2086 # a list of packages
	cd "$fresh/packages" && apt-get -q "$@" download $list
}

own="-o Dir::State::Lists=$fresh/lists -o Dir::Cache=$fresh/apt"
# shellcheck disable=SC2086 # a list of options
if ! { (download_packages) || { apt-get -q $own update && (download_packages $own); }; } >"$fresh/log" 2>&1; then
	cat "$fresh/log" >&2
	exit 1
fi
# Leave out tests, documentation and translations.
for package in "$fresh"/packages/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x -C "$fresh/tree" --no-same-owner --exclude='*/tests/*' --exclude='./usr/share/doc' \
		--exclude='./usr/share/man' --exclude='./usr/share/locale'
done
# The links that the installation of iptables creates.
if [ -e "$fresh/tree/usr/sbin/xtables-nft-multi" ]; then
	for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -s xtables-nft-multi "$fresh/tree/usr/sbin/$name"
	done
fi
if ! has_agents "$fresh/tree"; then
	echo "the downloaded packages do not contain all programs of: $packages" >&2
	exit 1
fi
mv -T "$fresh/tree" "$cache" 2>/dev/null || has_agents "$cache"
echo "$cache"

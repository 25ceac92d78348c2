#!/bin/sh
# Prints the folder under which Debian's Neutron agents and Open vSwitch lie, which the tests run as they are: / if the machine has
# them, else one in the user's cache, which is filled once with the packages that the machine lacks. They are unpacked, not
# installed: nothing starts, no account or setting is made, and an ordinary user may do it.
set -eu
cd "$(dirname "$0")"

packages="neutron-dhcp-agent neutron-openvswitch-agent openvswitch-switch"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth/agents-$(cksum <agents.sh | tr ' ' -)

has() {
	[ -x "$1/usr/bin/neutron-dhcp-agent" ] && [ -x "$1/usr/bin/neutron-openvswitch-agent" ] && [ -x "$1/usr/sbin/ovsdb-server" ]
}

if has ""; then
	echo /
	exit
elif has "$cache"; then
	echo "$cache"
	exit
fi

if ! command -v apt-get >/dev/null 2>&1; then
	echo "install Neutron's DHCP and Open vSwitch agents and Open vSwitch, as Debian packages them" >&2
	exit 1
fi
echo "unpacking Neutron's agents into $cache" >&2
mkdir -p "${cache%/*}"
# In a folder of its own until it is whole: another run may be doing the same.
fresh=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/tree" "$fresh/packages" "$fresh/lists/partial" "$fresh/apt/archives/partial"

# fill fetches the packages, and what they need and the machine lacks, from what it knows or what the archive says now. It ends at what
# fails by itself: where its outcome is asked for, the shell does not.
fill() {
	# shellcheck disable=SC2086 # a list of packages
	plan=$(apt-get -q -s -o Debug::NoLocking=1 "$@" install --no-install-recommends $packages) || return 1
	list=$( (echo "$packages" | tr ' ' '\n'; echo "$plan" | awk '/^Inst / { print $2 }') | sort -u)
	# shellcheck disable=SC2086 # a list of packages
	cd "$fresh/packages" && apt-get -q "$@" download $list
}

own="-o Dir::State::Lists=$fresh/lists -o Dir::Cache=$fresh/apt"
# shellcheck disable=SC2086 # a list of options
if ! { (fill) || { apt-get -q $own update && (fill $own); }; } >"$fresh/log" 2>&1; then
	cat "$fresh/log" >&2
	exit 1
fi
# What only builds, documents or tests something is left out.
for package in "$fresh"/packages/*.deb; do
	dpkg-deb --fsys-tarfile "$package" | tar -x -C "$fresh/tree" --no-same-owner --exclude='*/tests/*' --exclude='./usr/share/doc' \
		--exclude='./usr/share/man' --exclude='./usr/share/locale'
done
# What installing iptables would choose.
if [ -e "$fresh/tree/usr/sbin/xtables-nft-multi" ]; then
	for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -s xtables-nft-multi "$fresh/tree/usr/sbin/$name"
	done
fi
if ! has "$fresh/tree"; then
	echo "what apt-get brought lacks some of: $packages" >&2
	exit 1
fi
mv -T "$fresh/tree" "$cache" 2>/dev/null || has "$cache"
echo "$cache"

#!/bin/sh
# Refreshes the files of npm packages that the console and its tests contain, and checks them against the packages' integrity hashes and licences.
# With the option -n, vendor.sh changes no file and fails if a file differs from its package. vendor.txt lists the packages and files.
set -eu
here=$(cd "${0%/*}" && pwd)
root=$here/..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

packed=""
differs=""
while read -r package license integrity file target; do
	case $package in "" | "#"*) continue ;; esac
	if [ "$package" != "$packed" ]; then
		archive=$scratch/$(cd "$scratch" && npm pack --silent "$package" | tail -n 1)
		packed=$package
	fi
	actual="sha512-$(openssl dgst -sha512 -binary "$archive" | openssl base64 -A)"
	if [ "$actual" != "$integrity" ]; then
		echo "vendor.sh: $package has the integrity $actual, want $integrity" >&2
		exit 1
	fi
	# Some packages name their licence only in the file LICENSE.
	declared=$(tar -xzOf "$archive" package/package.json | sed -n 's/^ *"license": *"\([^"]*\)".*/\1/p')
	if [ "${declared:-$license}" != "$license" ]; then
		echo "vendor.sh: $package has the licence $declared, want $license" >&2
		exit 1
	fi
	tar -xzOf "$archive" "package/$file" >"$scratch/file"
	if cmp -s "$scratch/file" "$root/$target"; then
		continue
	fi
	if [ "${1:-}" = -n ]; then
		echo "vendor.sh: $target differs from $file of $package" >&2
		differs=yes
	else
		cp "$scratch/file" "$root/$target"
		echo "$target is $file of $package"
	fi
done <"$here/vendor.txt"
[ -z "$differs" ]

#!/bin/sh
# Builds the files of a release: for each architecture an archive with the programs, and the packages berth and berth-cli for Debian;
# the context of the container image; the SBOM; the section of the changelog; and the checksums.
#   tools/release.sh [-a ARCHITECTURE]… [-o FOLDER] [-p PROGRAMS]
# ARCHITECTURE is amd64 or arm64; default: both. FOLDER is the folder for the files; default: dist. PROGRAMS is a folder with the programs
# worker and starter, which the release contains instead of new builds. The version is $VERSION, or the tag v… of the commit.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

architectures="" out=dist programs=""
while getopts a:o:p: flag; do
	case $flag in
	a) architectures="$architectures $OPTARG" ;;
	o) out=$OPTARG ;;
	p) programs=$OPTARG ;;
	*) exit 2 ;;
	esac
done
fail() {
	echo "release: $*" >&2
	exit 1
}
tag=$(git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null || true)
VERSION=${VERSION:-$tag}
VERSION=${VERSION#v}
[ -n "$VERSION" ] || fail "the commit has no tag v…; create the tag, or set VERSION"
echo "$VERSION" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' || fail "VERSION=$VERSION is not a version such as 1.4.0 or 1.4.0-rc.1"
if [ "$VERSION" = "${tag#v}" ] && [ -n "$(git status --porcelain)" ]; then
	fail "the working tree differs from the tag $tag; commit or remove the changes"
fi
# All files of a release have the time of the commit, so that equal sources give equal files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
# In Debian's order, 1.4.0~rc.1 is older than 1.4.0.
DEBIAN_VERSION=$(echo "$VERSION" | sed 's/-/~/')
export VERSION DEBIAN_VERSION SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nfpm=$(go -C tools/release tool -n nfpm)
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -f "$out"/berth[-_]* "$out/SHA256SUMS"

# archive FILE FOLDER: packs the content of a folder.
archive() {
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw -C "$2" -cf - . | gzip -9n >"$1"
}

# build ARCHITECTURE FOLDER: puts berth-worker and starter into a folder.
build() {
	mkdir -p "$2"
	if [ -n "$programs" ]; then
		cp -L "$programs/worker" "$2/berth-worker"
		cp -L "$programs/starter" "$2/starter"
		return
	fi
	for program in worker:berth-worker starter:starter; do
		CGO_ENABLED=0 GOOS=linux GOARCH=$1 go build -trimpath -ldflags "-s $(tools/ldflags.sh)" -o "$2/${program#*:}" "./${program%:*}"
	done
}

# manual FOLDER: puts the manual pages of starter and its completions for the shells into a folder. They do not depend on the architecture.
manual() {
	mkdir -p "$1"
	if [ -n "$programs" ]; then
		cp -L "$programs/starter" "$work/starter"
	else
		go build -ldflags "$(tools/ldflags.sh)" -o "$work/starter" ./starter
	fi
	# Defaults in the help texts must not depend on the settings of this machine.
	env -i SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" "$work/starter" man "$1"
	gzip -9n "$1"/*.1
	for shell in bash zsh fish; do
		env -i "$work/starter" completion "$shell" >"$1/$shell"
	done
}

# package ARCHITECTURE FOLDER: writes the packages for Debian, with the programs in a folder.
package() {
	stage=$work/stage
	rm -rf "$stage"
	mkdir "$stage"
	cp -R deploy LICENSE NOTICE CHANGELOG.md docs/install.md docs/settings.md "$stage"
	cp -R "$2" "$stage/programs"
	cp -R "$work/manual" "$stage"
	find "$stage" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	for name in berth berth-cli; do
		(cd "$stage" && ARCHITECTURE=$1 "$nfpm" package --config "deploy/debian/$name.yaml" --packager deb --target "$out/") >"$work/log" 2>&1 ||
			{ cat "$work/log" >&2 && exit 1; }
	done
}

# The text of the section of this version, or of the section Unreleased before the section of the version exists.
changes() {
	for section in "$VERSION" Unreleased; do
		awk -v "heading=## [$section]" 'index($0, "## [") == 1 { found = index($0, heading) == 1; next } found' CHANGELOG.md >"$work/changes"
		if grep -q . "$work/changes"; then
			cat "$work/changes"
			return
		fi
	done
	fail "CHANGELOG.md has no section for $VERSION"
}
changes >"$out/berth-$VERSION-changes.md"

manual "$work/manual"
image=$work/image
mkdir -p "$image"
cp deploy/image/Dockerfile LICENSE NOTICE "$image"
for architecture in ${architectures:-amd64 arm64}; do
	echo "building berth $VERSION for linux/$architecture"
	folder=$work/$architecture
	build "$architecture" "$folder"
	mkdir -p "$image/linux"
	cp -r "$folder" "$image/linux/$architecture"
	package "$architecture" "$folder"
	cp LICENSE NOTICE "$folder"
	archive "$out/berth-$VERSION-linux-$architecture.tar.gz" "$folder"
done
archive "$out/berth-$VERSION-image.tar.gz" "$image"
go -C tools/dependencies run . -C "$root" -npm "$root/tools/vendor.txt" sbom ./worker ./starter >"$out/berth-$VERSION-sbom.json"
(cd "$out" && sha256sum -- berth[-_]* >SHA256SUMS)
echo "release: berth $VERSION is in $out"

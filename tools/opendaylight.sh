#!/bin/sh
# Prints the path of a program that serves OpenDaylight's Neutron northbound API: $BERTH_TEST_OPENDAYLIGHT, or the one in a folder in the
# user's cache. The script fills that folder once: Maven downloads the libraries of tools/opendaylight/pom.xml, and javac compiles
# tools/opendaylight/Northbound.java.
set -eu
cd "$(dirname "$0")"

if [ -n "${BERTH_TEST_OPENDAYLIGHT:-}" ]; then
	echo "$BERTH_TEST_OPENDAYLIGHT"
	exit
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth/opendaylight-$(cat opendaylight.sh opendaylight/* | cksum | tr ' ' -)
launcher=$cache/bin/opendaylight
if [ -x "$launcher" ]; then
	echo "$launcher"
	exit
fi

for program in mvn javac jar; do
	if ! command -v $program >/dev/null 2>&1; then
		echo "no $program on this machine; install Maven and a JDK of version 11 or later, or run make deps as root on Debian" >&2
		exit 1
	fi
done
echo "building OpenDaylight's Neutron northbound once into $cache: about 90 s" >&2
mkdir -p "${cache%/*}"
# Fill a temporary folder and rename it at the end: another run may do the same now. For the same reason the local Maven repository is
# a private one.
fresh=$(mktemp -d "$cache.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
tree=$fresh/tree
mkdir -p "$tree/bin" "$tree/lib" "$fresh/classes"

build() {
	mvn -B -q -f opendaylight/pom.xml -Dmaven.repo.local="$fresh/repository" dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory="$tree/lib" || return 1
	javac --release 11 -nowarn -cp "$tree/lib/*" -d "$fresh/classes" opendaylight/Northbound.java || return 1
	jar --create --file "$tree/lib/northbound.jar" -C "$fresh/classes" .
}
if ! build >"$fresh/log" 2>&1; then
	cat "$fresh/log" >&2
	exit 1
fi
path=""
for library in "$tree"/lib/*.jar; do
	path=$path:$cache/lib/${library##*/}
done
# Without the option --add-opens, Java 16 and later refuse the classes that MD-SAL generates. The logger's option hides a stack trace
# about a field that Java has not shown since version 12; MD-SAL works without it.
cat >"$tree/bin/opendaylight" <<END
#!/bin/sh
exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.lang=ALL-UNNAMED \\
	-Dorg.slf4j.simpleLogger.defaultLogLevel=warn \\
	-Dorg.slf4j.simpleLogger.log.org.opendaylight.mdsal.binding.dom.codec.gen.impl=error \\
	-cp "${path#:}" berth.Northbound "\$@"
END
chmod +x "$tree/bin/opendaylight"
mv -T "$tree" "$cache" 2>/dev/null || [ -x "$launcher" ]
echo "$launcher"

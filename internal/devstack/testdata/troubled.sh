#!/bin/sh
# A temporal CLI whose server ends immediately with an error while its folder contains files whose names begin with "trouble".
# Each such start removes one of these files.
here=$(dirname "$0")
if [ "$1" = server ]; then
	for trouble in "$here"/trouble*; do
		[ -e "$trouble" ] || break
		rm "$trouble"
		echo 'Error: listen: address already in use' >&2
		echo 'good bye'
		exit 1
	done
fi
exec "$here/genuine" "$@"

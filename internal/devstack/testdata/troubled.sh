#!/bin/sh
# A temporal CLI whose server ends at once as long as there are files called trouble… beside it.
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

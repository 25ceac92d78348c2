#!/bin/sh
# Creates berth's namespace and its search attributes. It is safe to run this script again. The temporal CLI reads TEMPORAL_ADDRESS and the
# variables of TLS itself, but `operator namespace` does not read TEMPORAL_NAMESPACE.
set -eu

# Repeat the commands until the frontend answers.
attempt=0
until temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 72h \
		--description "berth: ports, leases and journal entries"; do
	attempt=$((attempt + 1))
	[ "$attempt" -lt 60 ] || exit 1
	sleep 1
done

# Repeat the command, because the frontend sees a new namespace only after it has refreshed its cache of namespaces.
attempt=0
until error=$(temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
	--name BerthStatus --type Keyword \
	--name BerthProject --type Keyword \
	--name BerthHost --type Keyword \
	--name BerthWaitingFor --type KeywordList \
	--name BerthResource --type Keyword 2>&1); do
	attempt=$((attempt + 1))
	[ "$attempt" -lt 30 ] || {
		echo "$error" >&2
		exit 1
	}
	sleep 1
done

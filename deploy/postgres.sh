#!/bin/sh
# Creates the roles of berth and Temporal and their databases. The postgres image runs this script when the volume with its data is new.
# Neither role can connect to the databases of the other.
set -eu

psql --username "$POSTGRES_USER" --dbname postgres --no-psqlrc --quiet \
	--set ON_ERROR_STOP=1 --set berth="$DATABASE_PASSWORD_BERTH" --set temporal="$DATABASE_PASSWORD_TEMPORAL" <<'SQL'
create role berth login password :'berth';
create role temporal login password :'temporal';
create database berth owner berth;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database berth, temporal, temporal_visibility from public;
SQL

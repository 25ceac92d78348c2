#!/bin/sh
# Runs in the postgres image when its volume is new: a role for berth and one for Temporal, and their databases.
# Neither role can enter the other's.
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

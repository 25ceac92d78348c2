#!/bin/sh
# Creates the roles of berth and Temporal and their databases. The postgres image runs this script when the volume with its data is new.
# Neither role can connect to the databases of the other. psql reads the passwords from the files, so that no command line contains them.
set -eu
: "$DATABASE_PASSWORD_BERTH_FILE" "$DATABASE_PASSWORD_TEMPORAL_FILE"

psql --username "$POSTGRES_USER" --dbname postgres --no-psqlrc --quiet --set ON_ERROR_STOP=1 <<'SQL'
\set berth `cat "$DATABASE_PASSWORD_BERTH_FILE"`
\set temporal `cat "$DATABASE_PASSWORD_TEMPORAL_FILE"`
create role berth login password :'berth';
create role temporal login password :'temporal';
create database berth owner berth;
create database temporal owner temporal;
create database temporal_visibility owner temporal;
revoke connect on database berth, temporal, temporal_visibility from public;
SQL

#!/bin/sh
# Updates Temporal's schemas to the version of this image. It is safe to run this script again; with a newer image, it upgrades the schemas.
# temporal-sql-tool reads SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD.
set -eu

schema() {
	temporal-sql-tool --database "$1" setup-schema --version 0.0
	temporal-sql-tool --database "$1" update-schema --schema-name "postgresql/v12/$2"
}

schema temporal temporal
schema temporal_visibility visibility

#!/bin/sh
# Brings both schemas of Temporal up to this image's version. Repeating it is fine, and a newer image upgrades.
# temporal-sql-tool reads SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD itself.
set -eu

schema() {
	temporal-sql-tool --database "$1" setup-schema --version 0.0
	temporal-sql-tool --database "$1" update-schema --schema-name "postgresql/v12/$2"
}

schema temporal temporal
schema temporal_visibility visibility

// Package schema has the commands that write to the database directly: the migration of the schema, and the
// change of the authentication that the database expects of its processes. No other command of starter writes
// to the database directly.
package schema

// Package schema has the command that migrates the database schema. No other command of starter writes to the database directly.
package schema

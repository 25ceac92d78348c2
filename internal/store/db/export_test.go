package db

// FailWhenDone makes failWhenDone available to tests.
var FailWhenDone = failWhenDone

// Probes returns how often the database was probed because an operation got no answer.
func Probes(d *DB) int64 { return d.answers.probes.Load() }

// MigrateFiles makes migrateFiles available to tests.
var MigrateFiles = migrateFiles

// Package kills tests that berth still behaves correctly when its processes are killed, and when PostgreSQL,
// Temporal, RabbitMQ, Nova or the OpenDaylight controller fail, are restored, or are upgraded.
package kills

// Package torture tests that berth still behaves correctly when its processes are killed, when PostgreSQL,
// Temporal, RabbitMQ, Nova or the OpenDaylight controller fail, and when clients send hostile input.
package torture

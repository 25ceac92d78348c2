// Package torture tests that berth keeps its promises when processes are killed, when PostgreSQL, Temporal, RabbitMQ, Nova and the controller
// fail, and when clients send hostile input.
package torture

// Worker runs the long-running roles of berth. The roles are the HTTP API, the relay from the database to
// Temporal, the workers of every task queue, and the answers to agents over RabbitMQ. With the flag --dev,
// worker starts its own PostgreSQL and Temporal, and stubs of OpenDaylight, Nova and Neutron.
package main

import "berth/internal/server"

func main() { server.Main() }

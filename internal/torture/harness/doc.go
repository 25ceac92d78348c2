// Package harness starts whole deployments of berth for tests, makes their processes, servers and connections
// fail, sends requests as their clients, and compares what berth has acknowledged with what is there. Only
// tests import it.
package harness

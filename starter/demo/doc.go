// Package demo has the command that demonstrates berth's main tasks with real requests and checks the
// results.
package demo

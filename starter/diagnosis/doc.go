// Package diagnosis has the commands that check and explain a running berth: doctor, why, probe and port
// watch.
package diagnosis

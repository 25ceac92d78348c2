// Package top is `starter top`, the view of what waits in a terminal: a full-screen program that reads the
// API again and again, and changes nothing. The model is a value without I/O; the functions of views.go read
// the API for it.
package top

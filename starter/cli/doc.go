// Package cli is the core of the command line: the table of commands, the session with its settings, the
// clients of the API and of Temporal, the output formats, and errors with exit codes. Package cli defines no
// command and no resource itself.
package cli

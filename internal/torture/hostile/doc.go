// Package hostile tests that hostile input, large input and callers without permission change nothing and use
// little memory, and that each route answers as its documentation says, also while the database is away.
package hostile

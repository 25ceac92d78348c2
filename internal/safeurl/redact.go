package safeurl

import (
	"regexp"
	"strings"
)

// userInfo matches the part of a URL in a text that contains a user and a password. It extends to the last @
// of the word, because a password that is not escaped may contain a slash.
var userInfo = regexp.MustCompile(`://[^\s"',]*@`)

// Redact returns the text with a placeholder instead of the user and the password of each URL in the text.
// The user is secret too, because some services take a token as the user.
func Redact(text string) string { return userInfo.ReplaceAllLiteralString(text, "://(secret)@") }

// RedactValue returns a value that should be a URL, with a placeholder instead of a user and a password, and
// one instead of a query, which can have a token. The value may lack a scheme.
func RedactValue(value string) string {
	if i := strings.LastIndexByte(value, '@'); i >= 0 && !strings.Contains(value, "://") {
		value = "(secret)" + value[i:]
	}
	address, _, found := strings.Cut(Redact(value), "?")
	if found {
		address += "?(secret)"
	}
	return address
}

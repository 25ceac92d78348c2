package network

import (
	"strings"
	"unicode"
)

// IsSingleLine reports whether a text has neither control characters nor Unicode's separators of lines and
// paragraphs. Agents, Nova and programs that read webhooks write texts such as hosts, device owners and DHCP
// options into files, arguments and logs whose format is one line each, so that a line feed would add a line
// of the client's choice (in Neutron, CVE-2021-40085).
func IsSingleLine(s string) bool { return !strings.ContainsFunc(s, breaksLine) }

func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// IsFreeText reports whether a text has no control characters except tabs, line feeds and carriage returns.
// Names and descriptions are free text, which Neutron also lets have several lines; no agent reads them as
// lines.
func IsFreeText(s string) bool {
	return !strings.ContainsFunc(s,
		func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r) })
}

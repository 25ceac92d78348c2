package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"berth/starter/cli"
)

func controlsTerminal(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Blazar and Placement accept any characters in the names of leases and resource providers, and so does
// berth.
func TestNames_ControlNoTerminalInAnyFormat(t *testing.T) {
	t.Parallel()
	const name = "evil\x1b]0;owned\x07\u009b31m\u202etxt\u2066\r\nACTIVE\u2028計算"
	stub, url := newAPIStub(t)
	environ := []string{"BERTH_DATA=" + t.TempDir(), "BERTH_URL=" + url, "TEMPORAL_ADDRESS=127.0.0.1:1"}
	lease := stub.add("leases", cli.Object{
		"name":      name,
		"berth:why": cli.Object{"sentence": "waits for " + name},
	})["id"].(string)
	provider := stub.add("resource_providers", cli.Object{"name": name})["uuid"].(string)
	for _, command := range []string{
		"lease list", "lease show " + lease, "lease show " + name, "lease show none-" + name, "why lease " + lease,
		"provider list", "provider show " + provider,
	} {
		for _, format := range []string{"table", "wide", "csv", "name", "json", "yaml", "jsonpath=$..name"} {
			words := strings.SplitN(command, " ", 3)
			var out bytes.Buffer
			err := runIn(t.Context(), &cli.Session{}, append(words, "-o", format), environ, &out, &out)
			if err != nil {
				cli.ReportError(&out, err)
			}
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSuffix(line, "\n")
				if strings.ContainsFunc(line, controlsTerminal) || strings.HasPrefix(line, "ACTIVE") {
					t.Errorf("starter %q -o %s prints the line %q, which contains control characters of a name",
						words, format, line)
				}
			}
			if out.Len() == 0 {
				t.Errorf("starter %q -o %s prints nothing", words, format)
			}
		}
	}
}

package rpc

import "testing"

// Each version that a host chooses would have an exchange of its own.
func TestVersionedObject_OnlyVersionsOfNeutronArePushed(t *testing.T) {
	t.Parallel()
	for version, unknown := range map[string]bool{
		"1.0":     false,
		"1.10":    false,
		"1.20":    false,
		"1.21":    true,
		"1.99999": true,
		"1.07":    true,
		"1.+7":    true,
		"2.0":     true,
		"1":       true,
		"":        true,
	} {
		if isUnknownVersion(version) != unknown {
			t.Errorf("version %q: got unknown %t, want %t", version, !unknown, unknown)
		}
	}
}

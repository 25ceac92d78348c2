package contract

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// MaxReportLifetime is the maximum time from the moment when berth reads a signed report until the report
// expires. The time is limited because an attacker who can read Temporal's histories can send a signed report
// again until it expires.
const MaxReportLifetime = 24 * time.Hour

// MaxSignatureLength is the maximum length of a signature in Base64, in bytes.
const MaxSignatureLength = 128

// Refusal is the reason why berth refuses a report; empty: berth does not refuse it.
type Refusal string

// The reasons why berth refuses a report.
const (
	RefusedMalformed Refusal = "malformed"
	RefusedEvent     Refusal = "event"
	RefusedUnsigned  Refusal = "unsigned"
	RefusedExpired   Refusal = "expired"
	RefusedLifetime  Refusal = "lifetime"
	RefusedSignature Refusal = "signature"
)

// Refusals lists every Refusal.
var Refusals = []Refusal{
	RefusedMalformed,
	RefusedEvent,
	RefusedUnsigned,
	RefusedExpired,
	RefusedLifetime,
	RefusedSignature,
}

// Sentence returns the reason as a text for people.
func (f Refusal) Sentence() string {
	switch f {
	case RefusedMalformed:
		return "the report is malformed"
	case RefusedEvent:
		return "the key of a host may not sign the events block and unblock"
	case RefusedUnsigned:
		return "the report is not signed"
	case RefusedExpired:
		return "the report has expired"
	case RefusedLifetime:
		return "the report expires more than " + MaxReportLifetime.String() + " after it was read"
	case RefusedSignature:
		return "no key of the host has made the signature"
	default:
		return string(f)
	}
}

// SignedText returns the text that the signature of a report covers: seven lines that identify the version of
// the format, the workflow, the host, the entity, the event, the revision and the expiry. The text contains
// the workflow ID, so a signature for one port is not valid for another port.
func (r Report) SignedText(workflowID string) string {
	lines := []string{"berth-report-1", workflowID, r.Host, r.Entity, cmp.Or(r.Event, "complete"),
		strconv.FormatInt(r.Revision, 10), strconv.FormatInt(r.ExpiresAt, 10)}
	return strings.Join(lines, "\n") + "\n"
}

// Sign returns the report with an expiry, in seconds precision, and with the signature that the private key
// makes for the workflow.
func (r Report) Sign(key ed25519.PrivateKey, workflowID string, expires time.Time) Report {
	r.ExpiresAt = expires.Unix()
	r.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, []byte(r.SignedText(workflowID))))
	return r
}

// Verify returns why a report to a workflow is refused at the time `now`. The parameter `keys` contains the
// public keys of the report's host.
func (r Report) Verify(workflowID string, keys []ed25519.PublicKey, now time.Time) Refusal {
	if r.Entity == "" || strings.ContainsFunc(workflowID+r.Host+r.Entity, unicode.IsControl) {
		// a line feed in a field could shift the lines of the signed text, so that the signature also fits
		// another report
		return RefusedMalformed
	}
	switch {
	case r.Event == "block" || r.Event == "unblock":
		return RefusedEvent
	case r.Signature == "":
		return RefusedUnsigned
	case r.ExpiresAt < now.Unix():
		return RefusedExpired
	case r.ExpiresAt > now.Add(MaxReportLifetime).Unix():
		return RefusedLifetime
	}
	signature, err := base64.StdEncoding.DecodeString(r.Signature)
	text := []byte(r.SignedText(workflowID))
	signed := func(k ed25519.PublicKey) bool { return !IsLowOrder(k) && ed25519.Verify(k, text, signature) }
	if err != nil || !slices.ContainsFunc(keys, signed) {
		return RefusedSignature
	}
	return ""
}

package contract_test

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"berth/internal/contract"
)

// newKey returns the key pair of a fixed seed.
func newKey(seed byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(seed), ed25519.SeedSize)))
	return private.Public().(ed25519.PublicKey), private
}

func TestReport_VerifyAcceptsOnlyWhatTheHostSigned(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	old, _ := newKey('o')
	public, private := newKey('a')
	_, other := newKey('b')
	keys := []ed25519.PublicKey{old, public}
	const workflow = "port/0b0f7f0e-1d9f-4a35-9f0e-8f8a6f3a1b02"
	report := contract.Report{Entity: "L2", Host: "cmp-1", Revision: 7}
	signed := report.Sign(private, workflow, now.Add(time.Hour))
	with := func(change func(*contract.Report)) contract.Report {
		r := signed
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		report   contract.Report
		workflow string
		want     contract.Refusal
	}{
		"as signed":              {signed, workflow, ""},
		"the default event":      {with(func(r *contract.Report) { r.Event = "complete" }), workflow, ""},
		"for another port":       {signed, "port/1b0f7f0e-1d9f-4a35-9f0e-8f8a6f3a1b02", contract.RefusedSignature},
		"another host":           {with(func(r *contract.Report) { r.Host = "cmp-2" }), workflow, contract.RefusedSignature},
		"another entity":         {with(func(r *contract.Report) { r.Entity = "DHCP" }), workflow, contract.RefusedSignature},
		"another event":          {with(func(r *contract.Report) { r.Event = "lost" }), workflow, contract.RefusedSignature},
		"another revision":       {with(func(r *contract.Report) { r.Revision = 8 }), workflow, contract.RefusedSignature},
		"a later expiry":         {with(func(r *contract.Report) { r.ExpiresAt++ }), workflow, contract.RefusedSignature},
		"key of another host":    {report.Sign(other, workflow, now.Add(time.Hour)), workflow, contract.RefusedSignature},
		"not Base64":             {with(func(r *contract.Report) { r.Signature = "?" }), workflow, contract.RefusedSignature},
		"short signature":        {with(func(r *contract.Report) { r.Signature = base64.StdEncoding.EncodeToString([]byte("x")) }), workflow, contract.RefusedSignature},
		"unsigned":               {report, workflow, contract.RefusedUnsigned},
		"expires in this second": {report.Sign(private, workflow, now), workflow, ""},
		"expired":                {report.Sign(private, workflow, now.Add(-time.Second)), workflow, contract.RefusedExpired},
		"longest lifetime":       {report.Sign(private, workflow, now.Add(contract.MaxReportLifetime)), workflow, ""},
		"too long a lifetime":    {report.Sign(private, workflow, now.Add(contract.MaxReportLifetime+time.Second)), workflow, contract.RefusedLifetime},
		"block":                  {contract.Report{Entity: "x", Host: "cmp-1", Event: "block"}.Sign(private, workflow, now.Add(time.Hour)), workflow, contract.RefusedEvent},
		"unblock":                {contract.Report{Entity: "x", Host: "cmp-1", Event: "unblock"}.Sign(private, workflow, now.Add(time.Hour)), workflow, contract.RefusedEvent},
		"no entity":              {contract.Report{}, workflow, contract.RefusedMalformed},
		"an end of line":         {contract.Report{Entity: "x\ny", Host: "cmp-1"}.Sign(private, workflow, now.Add(time.Hour)), workflow, contract.RefusedMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.report.Verify(c.workflow, keys, now); got != c.want {
				t.Errorf("verify %+v: got %q, want %q", c.report, got, c.want)
			}
		})
	}
	if got := signed.Verify(workflow, nil, now); got != contract.RefusedSignature {
		t.Errorf("verify without keys: got %q, want %q", got, contract.RefusedSignature)
	}
}

// FuzzReport_SignatureFitsOneReport compares two reports to two workflows: the signature of the first never
// fits the second, unless both say the same.
func FuzzReport_SignatureFitsOneReport(f *testing.F) {
	f.Add("port/1", "cmp-1", "L2", "", int64(0), int64(0), "port/1", "cmp-1", "L2",
		"complete", int64(0), int64(0))
	f.Add("port/1", "cmp-1\nL2", "DHCP", "complete", int64(1), int64(60),
		"port/1\ncmp-1", "L2", "DHCP", "complete", int64(1), int64(60))
	f.Fuzz(func(t *testing.T, workflow, host, entity, event string, revision, lifetime int64,
		otherWorkflow, otherHost, otherEntity, otherEvent string, otherRevision, otherLifetime int64) {
		now := time.Unix(1_800_000_000, 0)
		public, private := newKey('a')
		signed := contract.Report{
			Entity:   entity,
			Host:     host,
			Event:    event,
			Revision: revision,
		}.Sign(private, workflow, now.Add(time.Duration(lifetime%100000)*time.Second))
		other := contract.Report{
			Entity:    otherEntity,
			Host:      otherHost,
			Event:     otherEvent,
			Revision:  otherRevision,
			ExpiresAt: now.Unix() + otherLifetime%100000,
			Signature: signed.Signature,
		}
		same := workflow == otherWorkflow && signed.Host == other.Host && signed.Entity == other.Entity &&
			signed.Revision == other.Revision &&
			signed.ExpiresAt == other.ExpiresAt &&
			cmp.Or(signed.Event, "complete") == cmp.Or(other.Event, "complete")
		if refusal := other.Verify(otherWorkflow, []ed25519.PublicKey{public}, now); refusal == "" && !same {
			t.Errorf("the signature of the report %+v to %q fits the report %+v to %q, want a refusal",
				signed, workflow, other, otherWorkflow)
		}
	})
}

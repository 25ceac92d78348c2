// Package agentreport signs the reports that an agent sends to the workflow of a port over Temporal. With
// BERTH_AGENT_SIGNATURES=required, berth applies a report only if the report is signed with a private key of
// its host. An administrator registers the matching public key with the command `starter agent key`. An agent
// sends the signed report as the argument of the signal or update whose name is the constant Message.
package agentreport

import (
	"crypto/ed25519"
	"time"

	"berth/internal/contract"
)

// Message is the name of the signal and of the update that carry a Report.
const Message = contract.SignalProvisioningComplete

// MaxLifetime is the maximum lifetime of a signed report: berth refuses a report that expires later than
// MaxLifetime after the moment when berth reads it.
const MaxLifetime = contract.MaxReportLifetime

// Report is an agent's report about a port.
type Report = contract.Report

// Refusal is the reason why berth refuses a report; empty: berth does not refuse it.
type Refusal = contract.Refusal

// WorkflowID returns the ID of the workflow of a port with the given UUID.
func WorkflowID(port string) string { return contract.PortID(port) }

// Sign returns the report with a signature that is valid for the port with the given UUID until the time
// `expires`, in seconds precision.
func Sign(key ed25519.PrivateKey, port string, r Report, expires time.Time) Report {
	return r.Sign(key, WorkflowID(port), expires)
}

// Verify returns why berth would refuse the report at the time `now`, if `keys` were the registered public
// keys of the report's host.
func Verify(keys []ed25519.PublicKey, port string, r Report, now time.Time) Refusal {
	return r.Verify(WorkflowID(port), keys, now)
}

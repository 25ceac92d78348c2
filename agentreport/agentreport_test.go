package agentreport_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/agentreport"
)

const port = "0b0f7f0e-1d9f-4a35-9f0e-8f8a6f3a1b02"

// An agent signs that it has connected a port, and sends the signed report as a signal to the workflow of the
// port.
func Example() {
	// in practice: read from a file
	key := ed25519.NewKeyFromSeed([]byte("a seed that the host keeps secret"[:ed25519.SeedSize]))
	report := agentreport.Report{Entity: "L2", Host: "cmp-1", Revision: 7}
	signed := agentreport.Sign(key, port, report, time.Date(2030, 1, 31, 10, 0, 0, 0, time.UTC))
	payload, err := json.Marshal(signed)
	if err != nil {
		panic(err)
	}
	fmt.Println(agentreport.Message, agentreport.WorkflowID(port))
	fmt.Println(string(payload))
	// Output: provisioning-complete port/0b0f7f0e-1d9f-4a35-9f0e-8f8a6f3a1b02
	// {"entity":"L2","host":"cmp-1","revision":7,"expires_at":1896084000,"signature":"i6mpl+Zd8vVLARpkELluMoHYNsube7ZlbXzOu8aJUgGdDLixP539jhuGdw9713Fpt8NSEgqDawAdbFPHPQlyDA=="}
}

// The shell commands in docs/agents.md make a signature that berth accepts.
func TestDocumentation_ShellCommandsSignAReport(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)<!-- sign: run by agentreport/agentreport_test.go -->\n.*?```sh\n(.*?)```").
		FindSubmatch(page)
	if recipe == nil {
		t.Fatal("docs/agents.md has no commands that sign a report")
	}
	folder := t.TempDir()
	sh := exec.CommandContext(t.Context(), "sh", "-euc", string(recipe[1])+"\nprintf '%s' \"$REPORT\"")
	sh.Dir = folder
	sh.Env = append(os.Environ(), "PORT="+port)
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("run the commands: error %v, output %s", err, out)
	}
	var report agentreport.Report
	if err := json.Unmarshal(out[strings.LastIndexByte(string(out), '{'):], &report); err != nil {
		t.Fatalf("decode the report %s: %v", out, err)
	}
	public, err := os.ReadFile(filepath.Join(folder, "cmp-1.pub"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(public)
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if refused := agentreport.Verify([]ed25519.PublicKey{key.(ed25519.PublicKey)}, port, report, time.Now()); refused != "" {
		t.Errorf("verify the report %+v: got %q, want that berth accepts it", report, refused)
	}
}

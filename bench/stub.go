package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// stubCommand is the command-line argument that makes the bench program serve the stubs of OpenDaylight and
// Nova and the baseline of the reads. The stubs run in a separate process, because the real services also run
// in other processes than berth.
const stubCommand = "serve-stubs"

// stubs holds the URLs of the servers in the stub process.
type stubs struct {
	ODL, Nova    string
	ReadBaseline string // see serveReadBaseline
	// URL of a second stub of OpenDaylight, for the figures that send requests without berth's journal
	SyncODL string
	Traces  string // URL of a receiver of traces that ignores them
}

// serveStubs prints the URLs in one line of JSON and serves until ctx ends.
func serveStubs(ctx context.Context, stdout io.Writer) error {
	odl, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer odl.Stop()
	syncODL, err := devstack.Serve(0, odltest.New())
	if err != nil {
		return err
	}
	defer syncODL.Stop()
	stub := &notifytest.Nova{}
	stub.MirrorHypervisors(func(ctx context.Context) ([]string, error) {
		return devstack.RootProviders(ctx, os.Getenv(databaseVariable))
	})
	nova, err := devstack.Serve(0, stub)
	if err != nil {
		return err
	}
	defer nova.Stop()
	reads, err := serveReadBaseline(ctx)
	if err != nil {
		return err
	}
	defer reads.Stop()
	traces, err := devstack.Serve(0, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	if err != nil {
		return err
	}
	defer traces.Stop()
	if err := json.NewEncoder(stdout).Encode(stubs{
		ODL:          odl.URL,
		Nova:         nova.URL,
		ReadBaseline: reads.URL,
		SyncODL:      syncODL.URL,
		Traces:       traces.URL,
	}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// startStubs runs the bench program a second time as the stub process, and reads the URLs of the stubs from
// the output of the stub process.
func (s *stack) startStubs(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, stubCommand)
	cmd.Env = append(os.Environ(), mainVariable+"=1", databaseVariable+"="+s.postgres.URL)
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	ended := s.runProcess(ctx, cmd)
	go func() { w.CloseWithError(fmt.Errorf("the stub process ended: %w", <-ended)) }()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, &s.stubs)
}

package harness

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"go.temporal.io/api/workflowservice/v1"
)

// Machine describes the machine and the servers of a run.
type Machine struct {
	Cores      int    `json:"cores"`
	System     string `json:"system"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
	Temporal   string `json:"temporal"`
	// true: the run used Temporal's dev server, and its results say nothing about production
	DevServer bool `json:"dev_server"`
}

// PrintHead prints the first line of a report: the machine and the servers, and the settings of the run. It
// warns if the results say nothing about production.
func (m Machine) PrintHead(w io.Writer, settings string) {
	fmt.Fprintf(w, "%d cores, %s, %s, PostgreSQL %s, Temporal %s; %s\n", m.Cores, m.System, m.Go, m.PostgreSQL, m.Temporal, settings)
	if m.DevServer {
		fmt.Fprintln(w, "Temporal is the dev server in memory: these results say nothing about production.")
	}
}

// describeMachine describes the machine and asks the servers for their versions.
func describeMachine(ctx context.Context, s *Stack) (Machine, error) {
	m := Machine{
		Cores:     runtime.NumCPU(),
		System:    runtime.GOOS + "/" + runtime.GOARCH,
		Go:        runtime.Version(),
		DevServer: s.devServer,
	}
	if err := s.Rows.QueryRow(ctx, `select current_setting('server_version')`).Scan(&m.PostgreSQL); err != nil {
		return m, err
	}
	system, err := s.Temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	m.Temporal = system.GetServerVersion()
	return m, err
}

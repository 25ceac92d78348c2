package servertest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
)

// Audit runs an audit and returns its findings: the objects that are missing, different or extra at the
// controller. If an audit is open already, Audit waits for its end first, because that audit may have begun
// before the latest changes.
func (s *Deployment) Audit(api *Worker) []Object {
	s.Helper()
	s.AwaitNone(
		"no audit is open",
		`select 'audit ' || id || ' is open' from mirror_run where kind = 'audit' and finished_at is null`,
	)
	path := fmt.Sprintf("/journal/v1/runs/%v",
		api.Must("POST", "/journal/v1/runs", Object{"kind": "audit"})["run"].(Object)["id"])
	s.Await("the audit has ended", func() string {
		_, answer, err := api.Do("GET", path, nil)
		run, _ := answer["run"].(Object)
		switch {
		case err == nil && run["state"] == "failed":
			s.Fatalf("the audit failed: %v", run["sentence"])
		case err == nil && run["state"] == "done":
			return ""
		}
		return fmt.Sprint(answer, err)
	})
	var all []Object
	for after := ""; ; {
		page := api.Must("GET", path+"/findings"+after, nil)["findings"].([]any)
		if len(page) == 0 {
			return all
		}
		for _, f := range page {
			all = append(all, f.(Object))
		}
		last := all[len(all)-1]
		after = "?after=" + url.QueryEscape(fmt.Sprintf("%v/%v", last["object_type"], last["object_id"]))
	}
}

// CheckAudit runs an audit, and fails the test if the audit finds a difference between berth's rows and the
// controller.
func (s *Deployment) CheckAudit(api *Worker, after string) {
	s.Helper()
	found := s.Audit(api)
	for _, f := range found[:min(len(found), 10)] {
		s.Errorf("after %s: an audit finds %d differences, want none: %v", after, len(found), f)
	}
}

// Starter runs the program starter against the API of the worker, and returns what it prints to stdout. If
// starter fails, Starter fails the test.
func (c *Worker) Starter(args ...string) string {
	c.T.Helper()
	cmd := exec.CommandContext(c.T.Context(), Program(c.T, "starter"), args...)
	cmd.Env = append(os.Environ(), "BERTH_URL="+c.URL, "BERTH_TOKEN="+c.Token)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.T.Fatalf("starter %q: %v\n%s%s", args, err, &stdout, &stderr)
	}
	return stdout.String()
}

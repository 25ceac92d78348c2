package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// stockClient is the unmodified openstack client, in one process that runs many commands.
type stockClient struct {
	t  *testing.T
	in io.Writer
	// The client process answers each request with one line of JSON.
	answers *bufio.Reader
}

// newStockClient starts the client without Keystone, for one endpoint.
func newStockClient(t *testing.T, endpoint string) *stockClient {
	t.Helper()
	return newClientWith(t, "OS_AUTH_TYPE=none", "OS_ENDPOINT="+endpoint)
}

// clientPython returns the Python interpreter that has the OpenStack clients.
func clientPython(t *testing.T) string {
	t.Helper()
	var stderr bytes.Buffer
	find := exec.CommandContext(t.Context(), "../../tools/openstack.sh")
	find.Stderr = &stderr
	python, err := find.Output()
	if err != nil {
		t.Fatalf("start the OpenStack clients: %v; run `make deps` to install the clients\n%s",
			err, stderr.String())
	}
	return strings.TrimSpace(string(python))
}

// newClientWith starts the openstack client in a process with the given environment variables.
func newClientWith(t *testing.T, variables ...string) *stockClient {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), clientPython(t), "testdata/run_osc.py")
	cmd.Env = append(variables,
		"PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		if t.Failed() && said.Len() > 0 {
			t.Logf("error output of the openstack client: %s", said.String())
		}
	})
	return &stockClient{t, in, bufio.NewReader(out)}
}

// ask sends a request to the script testdata/run_osc.py, which documents the possible requests.
func (c *stockClient) ask(request, answer any) {
	c.t.Helper()
	line, err := json.Marshal(request)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err == nil {
		line, err = c.answers.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	if err != nil {
		c.t.Fatalf("send the request %v to the client process: %v", request, err)
	}
}

// commands returns the names of a plug-in's commands. The parameter `group` is the Python entry point group
// in which the plug-in registers its commands.
func (c *stockClient) commands(group string) (names []string) {
	c.t.Helper()
	c.ask(group, &names)
	if len(names) == 0 {
		c.t.Fatalf(
			"list the client's commands of the entry point group %s: got none, want at least one",
			group,
		)
	}
	return names
}

// session calls f with a function that runs commands of the openstack client with the given global options.
// In a command, the character ␣ stands for a blank inside an argument.
func (c *stockClient) session(
	options string,
	f func(run func(line string) (code int, stdout, stderr string)),
) {
	c.t.Helper()
	c.program("openstack", options, f)
}

// program does the same as session for another program of the client's packages, whose name is the parameter
// `name`.
func (c *stockClient) program(
	name, options string,
	f func(run func(line string) (code int, stdout, stderr string)),
) {
	c.t.Helper()
	var begun string
	c.ask(map[string]any{"program": name, "options": strings.Fields(options)}, &begun)
	f(func(line string) (code int, stdout, stderr string) {
		c.t.Helper()
		arguments := strings.Fields(line)
		for i := range arguments {
			arguments[i] = strings.ReplaceAll(arguments[i], "␣", " ")
		}
		c.ask(arguments, &[]any{&code, &stdout, &stderr})
		return code, stdout, stderr
	})
	var code int
	if c.ask(nil, &code); code != 0 {
		c.t.Errorf("the client process ended with code %d, want 0", code)
	}
}

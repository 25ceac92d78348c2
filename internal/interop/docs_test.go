package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/config"
	"berth/internal/contract"
	"berth/internal/devstack"
	"berth/internal/identity"
	"berth/internal/server"
	"berth/internal/server/servertest"
)

// block is the shell block of the README that follows the comment with that name, command by command.
func block(t *testing.T, name string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)<!-- " + name + ":.*?```sh\n(.*?)```").FindSubmatch(raw)
	if found == nil {
		t.Fatalf("the README has no block %q", name)
	}
	var commands []string
	for line := range strings.SplitSeq(string(found[1]), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// newcomer is somebody in a second terminal, with our programs on PATH.
type newcomer struct {
	t       *testing.T
	environ []string
}

func (n newcomer) try(command string) (string, error) {
	cmd := exec.CommandContext(n.t.Context(), "bash", "-c", command)
	cmd.Env = n.environ
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs a command that must succeed, and returns what it says.
func (n newcomer) run(command string) string {
	n.t.Helper()
	out, err := n.try(command)
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// until runs a command until it says that, since Temporal's lists lag behind a little.
func (n newcomer) until(command, want string) {
	n.t.Helper()
	var out string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if out, _ = n.try(command); strings.Contains(out, want) {
			return
		}
	}
	n.t.Errorf("%s never said %q:\n%s", command, want, out)
}

// programs is a folder with worker and starter as make builds them, and the temporal CLI.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"worker", "starter"} {
		if err := os.Symlink(servertest.Program(t, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cli, err := devstack.TemporalCLI(t.Context(), func(string) {})
	if err == nil {
		cli, err = filepath.Abs(cli)
	}
	if err == nil {
		err = os.Symlink(cli, filepath.Join(dir, "temporal"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheMainJobRunsAndTheReadmeIsTrue(t *testing.T) {
	t.Parallel()
	bin, data := programs(t), servertest.DataFolder(t)
	environ := append(slices.Clip(os.Environ()), append([]string{"BERTH_DATA=" + data}, servertest.FreePorts...)...)
	startWorker := func() *servertest.Process {
		cmd := exec.Command(filepath.Join(bin, "worker"), "--dev")
		cmd.Env = environ
		return servertest.StartCommand(t, cmd)
	}
	r := startWorker()
	found := r.Addresses(t, data)
	if !strings.Contains(r.Output(), "Everything was as promised") {
		t.Fatalf("the main job failed:\n%s", r.Output())
	}
	n := newcomer{t: t, environ: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "BERTH_DATA=" + data,
		"TEMPORAL_ADDRESS=" + found["TEMPORAL_ADDRESS"]}}

	for _, command := range block(t, "tasks") {
		n.run(command)
	}
	if out := n.run("starter port list"); !regexp.MustCompile(`web .*ACTIVE`).MatchString(out) {
		t.Errorf("the port of the tasks is not ACTIVE:\n%s", out)
	}
	n.recipes()
	for _, line := range []string{"doctor", "why port/web", "journal list", "port list -o json", "lease list -o yaml"} {
		n.run("starter " + line)
	}

	r.Stop(t, os.Interrupt)
	again := startWorker()
	again.Addresses(t, data)
	if !strings.Contains(again.Output(), "Everything was as promised") {
		t.Fatalf("the main job failed on kept data:\n%s", again.Output())
	}
	if out := n.run("starter port list"); !regexp.MustCompile(`web .*ACTIVE`).MatchString(out) {
		t.Errorf("the second run lost the port of the first:\n%s", out)
	}
}

// recipes runs those of the README for a port that waits for both agents, and holds each to what it promises.
func (n newcomer) recipes() {
	n.t.Helper()
	var port struct{ ID string }
	n.run(`starter agent report cmp-1 --type "Open vSwitch agent"`) // the one of the main tasks may be long ago
	out := n.run("starter port create recipe --network blue --host cmp-1 --device-owner compute:nova --device 7f4a3c52-5e0e-4c39-9d2b-0f6d2f1f0a02 -o json")
	if err := json.Unmarshal([]byte(out), &port); err != nil || port.ID == "" {
		n.t.Fatalf("create the port: %v: %s", err, out)
	}
	n.environ = append(n.environ, "PORT="+port.ID)
	id := contract.PortID(port.ID)
	n.until(`temporal workflow list -q 'BerthWaitingFor="L2"'`, id)
	for _, command := range block(n.t, "recipes") {
		said := n.run(command)
		for pattern, want := range map[string]string{
			`list -q`:         id,
			`count -q`:        "Total",
			`describe`:        "port recipe",
			`metadata`:        "waits for DHCP",
			`--type why`:      "waits for DHCP",
			`workflow show`:   "WorkflowExecutionStarted",
			`signal`:          "succeeded",
			`update execute`:  "status:ACTIVE",
			`BerthStatus="DO`: id,
		} {
			if strings.Contains(command, pattern) && !strings.Contains(said, want) {
				n.t.Errorf("%s does not say %q:\n%s", command, want, said)
			}
		}
	}
	n.until(`temporal workflow list -q 'BerthResource="port" AND BerthStatus="ACTIVE"'`, id)
	if out := n.run("starter port show recipe"); !strings.Contains(out, "ACTIVE") {
		n.t.Errorf("after both reports the port is\n%s", out)
	}
}

func TestReadmeNamesEveryVariable(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range config.Variables() {
		if !strings.Contains(string(raw), "| `"+name+"` |") {
			t.Errorf("the README's table of settings lacks %s", name)
		}
	}
	for _, found := range regexp.MustCompile("(?m)^\\| `((?:BERTH|OS)_\\w+)` \\|").FindAllStringSubmatch(string(raw), -1) {
		if !slices.Contains(config.Variables(), found[1]) {
			t.Errorf("the README explains %s, which nobody reads", found[1])
		}
	}
}

func TestReadmesPolicyIsUnderstood(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "### Who may do what")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil || !found {
		t.Fatal("the README has no example of a policy", err)
	}
	cfg, err := config.Load([]string{"BERTH_POLICY_FILE=" + path, "BERTH_ENFORCE_NEW_DEFAULTS=off"})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := server.OpenPolicy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	admin, member := identity.Caller{Project: "p", Roles: []string{"admin"}}, identity.Caller{Project: "p", Roles: []string{"member"}}
	if !rules.Allows("placement:traits:list", member, nil) || !rules.Allows("placement:reshaper:reshape", admin, nil) || rules.Allows("placement:traits:delete", admin, nil) || rules.Allows("placement:traits:update", member, nil) {
		t.Error("the example does not mean what it says")
	}

	cfg.Policy.File = filepath.Join(t.TempDir(), "none")
	if _, err := server.OpenPolicy(cfg); err == nil || !strings.Contains(err.Error(), "BERTH_POLICY_FILE") {
		t.Errorf("a file that is not there: %v", err)
	}
}

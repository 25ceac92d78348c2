package interop

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/devstack"
	"berth/internal/server/servertest"
)

const repository = "../.."

// notRunMark is the beginning of the line before a code block whose commands the test does not run.
const notRunMark = "*Not run by the tests"

// signedByHand is the reason why the test does not run the commands that sign a report with OpenSSL.
const signedByHand = "package agentreport runs the commands together and verifies the signature"

// versionedByRecipe is the reason why the test does not run the commands that move work to another version.
const versionedByRecipe = "TestWorkerVersioning_RecipesMoveTheWork runs the commands with two versions"

// byAgentTest is the reason why the test does not run the commands that create the user of a host.
const byAgentTest = "TestNeutronAgents_BringPortsUp runs the commands and starts agents with the new user"

// notRun lists the documented commands that the test does not run: the beginning of the command, and the
// reason.
var notRun = []struct{ prefix, reason string }{
	{"make ", "the target takes minutes or runs this test; make -n checks that the target exists"},
	{"git ", "needs a remote or changes the working tree"},
	{"sed -n 's/.*image: ", "needs a container engine and its registry"},
	{"kubectl ", "needs a cluster; package deploy checks the files"},
	{"docker ", "needs a container engine; package deploy tests the files"},
	{
		"deploy/certificates.sh",
		"a step of the deployment with Docker Compose; package deploy runs the script into another folder",
	},
	{
		"deploy/secrets.sh",
		"a step of the deployment with Docker Compose; package deploy runs the script into another folder",
	},
	{
		"(set -a; . ./.env; deploy/secrets.sh)",
		"needs the file of an earlier version; package deploy runs the script with such variables",
	},
	{
		"install -m 600 deploy/",
		"a step of the deployment with Docker Compose; package deploy tests the files",
	},
	{"go test ", "is a test itself"},
	{"go install ", "writes into the user's folder of programs"},
	{"apt-get install ", "changes the machine; package deploy tests the content of the packages"},
	{
		"systemctl ",
		"needs systemd as the first process; package deploy checks the services with systemd-analyze",
	},
	{"sudo -u postgres ", "changes the PostgreSQL server of the machine"},
	{"umask 077", signedByHand},
	{"openssl ", signedByHand},
	{"EXPIRES=", signedByHand},
	{"printf 'berth-report-1", signedByHand},
	{"SIGNATURE=", signedByHand},
	{"REPORT=", signedByHand},
	{"temporal worker deployment ", versionedByRecipe},
	{"temporal workflow list -q \"TemporalWorkerDeploymentVersion", versionedByRecipe},
	{"temporal workflow update-options ", versionedByRecipe},
	{"pg_restore ", "TestRestore_RunbookBringsBackAllWork runs the commands"},
	{"(umask 077; pg_dump ", "TestRestore_RunbookBringsBackAllWork runs the commands"},
	{"export TEMPORAL_ADDRESS=", "a step of the installation of the packages, which make install-test runs"},
	{"/usr/share/berth/", "a step of the installation of the packages, which make install-test runs"},
	{"rabbitmqctl ", byAgentTest},
	{"printf '%s\\n' \"$PASSWORD\" | rabbitmqctl ", byAgentTest},
}

// notRunBecause returns the reason why TestDocs_CommandsRun does not run a command, or "" if the test runs
// the command.
func notRunBecause(command string) string {
	for _, n := range notRun {
		if strings.HasPrefix(command, n.prefix) {
			return n.reason
		}
	}
	return ""
}

// codeBlock is a fenced code block of a Markdown page.
type codeBlock struct {
	language string
	text     string
	marked   bool // the line before the block begins with notRunMark
}

// blocks returns the fenced code blocks of a Markdown page, in the order of the page.
func blocks(t *testing.T, page string) []codeBlock {
	t.Helper()
	var all []codeBlock
	var current *codeBlock
	before := ""
	for line := range strings.SplitSeq(readPage(t, page), "\n") {
		line = strings.TrimLeft(line, " ") // a block in a list is indented
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && current == nil:
			current = &codeBlock{language: language, marked: strings.HasPrefix(before, notRunMark)}
		case fence:
			all = append(all, *current)
			current, before = nil, ""
		case current != nil:
			current.text += line + "\n"
		case line != "":
			before = line
		}
	}
	if current != nil {
		t.Fatalf("page %s: a code block has no closing fence, want one", page)
	}
	return all
}

// commands returns the commands in a code block. If a line of the code block ends in a backslash, the command
// continues on the next line. The result of commands does not contain the comment lines of the code block.
func (b codeBlock) commands() []string {
	var all []string
	for line := range strings.SplitSeq(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// allPages lists all Markdown pages of the repository. The result of allPages begins with the pages in
// pagesInOrder.
func allPages(t *testing.T) []string {
	t.Helper()
	all := slices.Clone(pagesInOrder)
	err := filepath.WalkDir(repository, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != repository && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		page := strings.TrimPrefix(filepath.ToSlash(name), repository+"/")
		if strings.HasSuffix(page, ".md") && !slices.Contains(all, page) {
			all = append(all, page)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// shell runs commands as a user's terminal does. The programs of berth and the OpenStack clients are on PATH,
// and each command sees the variables that earlier commands have exported.
type shell struct {
	t       *testing.T
	dir     string            // the working directory, has the folders bin and .berth like the repository
	state   string            // a file with the exported variables
	environ map[string]string // environment of the first command
}

func newShell(t *testing.T, bin, data string, addresses map[string]string) *shell {
	t.Helper()
	dir := t.TempDir()
	for link, target := range map[string]string{"bin": bin, ".berth": data} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	environ := maps.Clone(addresses)
	environ["PATH"] = strings.Join([]string{bin, filepath.Dir(clientPython(t)), os.Getenv("PATH")}, ":")
	environ["HOME"] = t.TempDir()
	environ["LC_ALL"] = "C.UTF-8"
	return &shell{
		t:       t,
		dir:     dir,
		state:   filepath.Join(dir, "state"),
		environ: environ,
	}
}

// set gives a shell variable a value for the next commands.
func (s *shell) set(name, value string) {
	s.t.Helper()
	s.environ[name] = value
	s.run("export " + name + "='" + value + "'")
}

// value returns the value of a variable in the initial environment of the shell, or the value that the method
// set gave to the variable.
func (s *shell) value(name string) string { return s.environ[name] }

// expand replaces each variable in an expected text by the value of the variable.
func (s *shell) expand(text string) string { return os.Expand(text, s.value) }

func (s *shell) try(command string) (string, error) {
	cmd := exec.CommandContext(
		s.t.Context(), "bash", "-c",
		`[ ! -e "$1" ] || . "$1"; eval "$2"; code=$?; export -p >"$1"; exit $code`,
		"bash", s.state, command,
	)
	cmd.Dir = s.dir
	for name, value := range s.environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs a command and returns the output of the command. If the command fails, the test fails.
func (s *shell) run(command string) string {
	s.t.Helper()
	out, err := s.try(command)
	if err != nil {
		s.t.Fatalf("run the command %q: %v, want success; output:\n%s", command, err, out)
	}
	return out
}

// until repeats a command until the output of the command contains the text `want`. until has to repeat the
// command because Temporal updates its workflow lists with a delay.
func (s *shell) until(command, want string) {
	s.t.Helper()
	s.await(command+" prints "+want, func() string {
		if out, _ := s.try(command); !strings.Contains(out, want) {
			return out
		}
		return ""
	})
}

// await repeats the function `check` until `check` returns "". If `check` returns another text than "", the
// text says what is not yet as expected.
func (s *shell) await(what string, check func() string) {
	s.t.Helper()
	amiss := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if amiss = check(); amiss == "" {
			return
		}
	}
	s.t.Fatalf("wait until %s: not so after two minutes; last result of the check:\n%s", what, amiss)
}

// checkTarget checks that the Makefile has the target that a documented make command names.
func (s *shell) checkTarget(page, command string) {
	s.t.Helper()
	dry := "make -n" + strings.TrimPrefix(command, "make")
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", dry)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("page %s: the dry run of the make command failed: %s: %v\n%s", page, dry, err, out)
	}
}

// programs returns a folder that contains the temporal CLI and the programs worker and starter, built as the
// Makefile builds them.
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

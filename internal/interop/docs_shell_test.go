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

// notRunMark begins the line before a block whose commands the test does not run.
const notRunMark = "*Not run by the tests"

// notRun has prefixes of documented commands that the test does not run, with the reason.
var notRun = []struct{ prefix, reason string }{
	{"make ", "the target takes minutes or runs this test; make -n checks that the target exists"},
	{"git ", "needs a remote or changes the working tree"},
	{"docker ", "needs a container engine; package deploy tests the files"},
	{"cp deploy/", "a step of the deployment with Docker Compose; package deploy tests the files"},
	{"go test ", "is a test itself"},
}

// notRunBecause returns the reason why a command is not run, or "" if the test runs it.
func notRunBecause(command string) string {
	for _, n := range notRun {
		if strings.HasPrefix(command, n.prefix) {
			return n.reason
		}
	}
	return ""
}

// codeBlock is a fenced block of a page.
type codeBlock struct {
	language string
	text     string
	marked   bool // the line before the block begins with notRunMark
}

// blocks returns the fenced blocks of a page in their order.
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
		t.Fatalf("page %s: a code block has no closing fence", page)
	}
	return all
}

// commands returns the commands of a block. A line that ends with a backslash continues; lines of comments are left out.
func (b codeBlock) commands() []string {
	var all []string
	for line := range strings.SplitSeq(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// allPages lists every Markdown page of the repository, those of pagesInOrder first.
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

// shell runs commands as in a second terminal: with berth's programs and the OpenStack clients on PATH, and with variables that a
// command has exported visible to the next one.
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
	return &shell{t: t, dir: dir, state: filepath.Join(dir, "state"), environ: environ}
}

// set gives a variable a value for the next commands.
func (s *shell) set(name, value string) {
	s.t.Helper()
	s.environ[name] = value
	s.run("export " + name + "='" + value + "'")
}

// value returns the current value of a variable.
func (s *shell) value(name string) string { return s.environ[name] }

// expand replaces a variable in an expectation by its value.
func (s *shell) expand(text string) string { return os.Expand(text, s.value) }

func (s *shell) try(command string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", `[ ! -e "$1" ] || . "$1"; eval "$2"; code=$?; export -p >"$1"; exit $code`, "bash", s.state, command)
	cmd.Dir = s.dir
	for name, value := range s.environ {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run runs a command that must succeed, and returns its output.
func (s *shell) run(command string) string {
	s.t.Helper()
	out, err := s.try(command)
	if err != nil {
		s.t.Fatalf("the command %q must succeed: %v\n%s", command, err, out)
	}
	return out
}

// until repeats a command until its output contains the text. It repeats because Temporal updates its workflow lists with a delay.
func (s *shell) until(command, want string) {
	s.t.Helper()
	s.await(command+" prints "+want, func() string {
		if out, _ := s.try(command); !strings.Contains(out, want) {
			return out
		}
		return ""
	})
}

// await repeats a check until the check returns "", which means that the condition is met.
func (s *shell) await(what string, check func() string) {
	s.t.Helper()
	amiss := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if amiss = check(); amiss == "" {
			return
		}
	}
	s.t.Fatalf("condition not met after two minutes: %s:\n%s", what, amiss)
}

// checkTarget checks that the Makefile has the target of a command.
func (s *shell) checkTarget(page, command string) {
	s.t.Helper()
	dry := "make -n" + strings.TrimPrefix(command, "make")
	cmd := exec.CommandContext(s.t.Context(), "bash", "-c", dry)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("page %s: the dry run %s failed: %v\n%s", page, dry, err, out)
	}
}

// programs returns a folder with worker and starter, built as make builds them, and the temporal CLI.
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

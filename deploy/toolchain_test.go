package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fakeGo is a go command whose version is $VERSION, and whose govulncheck exits with $VULNERABLE.
const fakeGo = `#!/bin/sh
case "$*" in
"env GOVERSION") echo "go$VERSION" ;;
"-C tools/lint tool -n govulncheck") echo "$PWD/bin/govulncheck" ;;
*) exit 64 ;;
esac
`

// copyToolchainFiles copies tools/toolchain.sh and the files that it reads to a folder.
func copyToolchainFiles(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"tools/toolchain.sh", "go.mod", "tools/lint/go.mod", "tools/temporal/go.mod", "Dockerfile", "deploy/image/Dockerfile"} {
		raw, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		writeScript(t, filepath.Join(dir, name), string(raw))
	}
	writeScript(t, filepath.Join(dir, "bin/go"), fakeGo)
	writeScript(
		t,
		filepath.Join(dir, "bin/govulncheck"),
		"#!/bin/sh\n[ \"$*\" = '-db file:///vulndb ./worker ./starter' ] && exit $VULNERABLE\nexit 64\n",
	)
	return dir
}

func writeScript(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestToolchain_OlderAndVulnerableOnesAreRefused(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	required := string(regexp.MustCompile(`(?m)^go (.+)$`).FindSubmatch(raw)[1])
	for name, c := range map[string]struct {
		version, database, vulnerable string
		file                          string // a file that names another version of Go
		problem                       string // "" if the toolchain is accepted
	}{
		"the required version":         {version: required},
		"a newer version":              {version: "1.99.0"},
		"a release with experiments":   {version: required + " X:nodwarf5"},
		"an older patch":               {version: "1.26.8", problem: "the Go toolchain is 1.26.8"},
		"an older version":             {version: "1.9.0", problem: "the Go toolchain is 1.9.0"},
		"another version in a module":  {version: required, file: "tools/lint/go.mod", problem: "./tools/lint/go.mod must have"},
		"another version in the image": {version: required, file: "deploy/image/Dockerfile", problem: "deploy/image/Dockerfile must build"},
		"no known vulnerability":       {version: required, database: "file:///vulndb", vulnerable: "0"},
		"a known vulnerability": {
			version:    required,
			database:   "file:///vulndb",
			vulnerable: "3",
			problem:    "govulncheck knows",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyToolchainFiles(t)
			if c.file != "" {
				raw, err := os.ReadFile(filepath.Join(dir, c.file))
				if err != nil {
					t.Fatal(err)
				}
				writeScript(t, filepath.Join(dir, c.file),
					strings.ReplaceAll(string(raw), required, "1.26.8"))
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "tools/toolchain.sh"))
			cmd.Env = append(
				os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"),
				"VERSION="+c.version, "GOVULNDB="+c.database, "VULNERABLE="+c.vulnerable,
			)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.problem == "") || !strings.Contains(string(out), c.problem) {
				t.Errorf("tools/toolchain.sh: got error %v and %q, want the problem %q", err, out, c.problem)
			}
		})
	}
}

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
)

// maxExposure is the largest permitted exposure of a service that systemd-analyze security computes, times
// ten. Zero is no exposure.
const maxExposure = "15"

// script runs a script of the folder tools with additional environment variables.
func script(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", "tools", name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// output runs a command that must succeed, and returns the output of the command.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// stubProgram replaces the programs of a release. As starter does, it writes a manual page into a folder and
// prints completions.
const stubProgram = `#!/bin/sh
case $1 in
man) echo ".TH starter" >"$2/starter.1" ;;
completion) echo "completion of $2" ;;
esac
`

// buildRelease builds a release for amd64 with short scripts instead of the programs, and returns the folder
// of the files.
func buildRelease(t *testing.T) string {
	t.Helper()
	stubs, dist := t.TempDir(), t.TempDir()
	for _, name := range []string{"worker", "starter"} {
		if err := os.WriteFile(filepath.Join(stubs, name), []byte(stubProgram), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := script(t, []string{"VERSION=9.8.7-rc.1", "SOURCE_DATE_EPOCH=1700000000"}, "release.sh", "-a", "amd64", "-o", dist, "-p", stubs); err != nil {
		t.Fatalf("build a release: %v\n%s", err, out)
	}
	return dist
}

func TestRelease_HasProgramsPackagesImageSBOMChangesAndChecksums(t *testing.T) {
	t.Parallel()
	dist := buildRelease(t)
	want := []string{
		"SHA256SUMS",
		"berth-9.8.7-rc.1-changes.md",
		"berth-9.8.7-rc.1-image.tar.gz",
		"berth-9.8.7-rc.1-linux-amd64.tar.gz",
		"berth-9.8.7-rc.1-sbom.json",
		"berth-cli_9.8.7~rc.1_amd64.deb",
		"berth_9.8.7~rc.1_amd64.deb",
	}
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files of the release (-want +got):\n%s", d)
	}
	sums := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	sums.Dir = dist
	if out, err := sums.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != len(want)-1 {
		t.Errorf("check the checksums: got error %v and the output\n%s; want OK for %d files",
			err, out, len(want)-1)
	}
	changes, err := os.ReadFile(filepath.Join(dist, want[1]))
	if err != nil || !strings.Contains(string(changes), "### Added") ||
		regexp.MustCompile(`(?m)^## `).Match(changes) {
		t.Errorf("section of the changelog: got error %v and\n%.200s\n; want the text of one section",
			err, changes)
	}
	image := output(t, "tar", "-tzf", filepath.Join(dist, want[2]))
	for _, name := range []string{"./Dockerfile\n", "./LICENSE\n", "./NOTICE\n", "./linux/amd64/berth-worker\n", "./linux/amd64/starter\n"} {
		if !strings.Contains(image, name) {
			t.Errorf("context of the image: want the file %s, got the files\n%s",
				strings.TrimSpace(name), image)
		}
	}
	checkPackages(t, filepath.Join(dist, want[5]), filepath.Join(dist, want[6]))
}

// smallProgram replaces the programs of a release whose build must not take minutes. It has the commands of
// starter that tools/release.sh runs.
const smallProgram = `package main

import (
	"fmt"
	"os"

	"berth/internal/version"
)

func main() {
	switch os.Args[1] {
	case "man":
		if err := os.WriteFile(os.Args[2]+"/starter.1", []byte(".TH starter\n"), 0o644); err != nil {
			panic(err)
		}
	default:
		fmt.Print(os.Args[1:], version.Read().Text("starter", ""))
	}
}
`

// TestRelease_TwoBuildsAreEqualByteForByte builds a release from two folders with different names. Only the
// programs are small; make release-check does the same with the real ones and for all architectures.
func TestRelease_TwoBuildsAreEqualByteForByte(t *testing.T) {
	t.Parallel()
	var sums [2]string
	for i, name := range []string{"first", "another-folder"} {
		source, dist := filepath.Join(t.TempDir(), name), t.TempDir()
		if err := os.Mkdir(source, 0o755); err != nil {
			t.Fatal(err)
		}
		output(t, "sh", "-e", "-c",
			`tar -C .. --exclude-vcs --exclude=./bin --exclude=./dist --exclude=./.berth --exclude=./deploy/private -cf - . | tar -C "$0" -xf -`, source)
		for _, program := range []string{"worker", "starter"} {
			if err := os.WriteFile(filepath.Join(source, program, "main.go"), []byte(smallProgram), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		build := exec.CommandContext(t.Context(), filepath.Join(source, "tools/release.sh"), "-a", "amd64", "-o", dist)
		build.Env = append(os.Environ(), "VERSION=9.8.7", "SOURCE_DATE_EPOCH=1700000000")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build a release in the folder %s: %v\n%s", name, err, out)
		}
		raw, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(raw)
	}
	if d := cmp.Diff(sums[0], sums[1]); d != "" {
		t.Errorf("checksums of two builds of a release (-first +second):\n%s", d)
	}
}

// checkPackages checks the files of the packages, and the systemd services in the package berth.
func checkPackages(t *testing.T, cli, server string) {
	t.Helper()
	field := output(t, "dpkg-deb", "--field", server, "Version", "Depends")
	if !strings.Contains(field, "Version: 9.8.7~rc.1\n") ||
		!strings.Contains(field, "berth-cli (= 9.8.7~rc.1)") {
		t.Errorf(
			"fields of the package berth: got\n%s; want the version and a dependency on the same version of berth-cli",
			field,
		)
	}
	root := t.TempDir()
	for _, name := range []string{cli, server} {
		output(t, "dpkg-deb", "--extract", name, root)
	}
	for name, mode := range map[string]os.FileMode{
		"usr/bin/berth-worker":              0o755,
		"usr/bin/starter":                   0o755,
		"etc/berth/berth.env":               0o600,
		"usr/share/doc/berth/copyright":     0o644,
		"usr/share/doc/berth-cli/copyright": 0o644,
		"usr/share/doc/berth/install.md":    0o644,

		"usr/share/man/man1/starter.1.gz":                  0o644,
		"usr/share/bash-completion/completions/starter":    0o644,
		"usr/share/zsh/vendor-completions/_starter":        0o644,
		"usr/share/fish/vendor_completions.d/starter.fish": 0o644,
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("file %s of the packages: got error %v and %v, want the mode %v", name, err, info, mode)
		}
	}
	for name, want := range map[string]string{
		"bash-completion/completions/starter":    "completion of bash\n",
		"zsh/vendor-completions/_starter":        "completion of zsh\n",
		"fish/vendor_completions.d/starter.fish": "completion of fish\n",
	} {
		if got, err := os.ReadFile(filepath.Join(root, "usr/share", name)); err != nil || string(got) != want {
			t.Errorf("completion %s: got %q, error %v; want %q", name, got, err, want)
		}
	}
	units := filepath.Join(root, "usr/lib/systemd/system")
	found, err := filepath.Glob(filepath.Join(units, "*.service"))
	if err != nil || len(found) != 4 {
		t.Fatalf("services of the package: got %q (error %v), want four", found, err)
	}
	for _, unit := range found {
		raw, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// systemd-analyze verify looks for the program on this machine.
		moved := strings.Replace(string(raw), "ExecStart=/usr/bin/", "ExecStart="+root+"/usr/bin/", 1)
		if err := os.WriteFile(unit, []byte(moved), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	addCredential(t, units)
	t.Run("verify",
		func(t *testing.T) { analyze(t, units, append([]string{"verify", "--man=no"}, found...)...) })
	t.Run("security", func(t *testing.T) {
		for _, unit := range found {
			analyze(t, units, "security", "--no-pager", "--offline=yes", "--threshold="+maxExposure, unit)
		}
	})
}

// addCredential adds the drop-in of docs/install.md to the service berth-worker.
func addCredential(t *testing.T, units string) {
	t.Helper()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	dropIn := regexp.MustCompile("(?s)```ini\n(.*?)```").FindSubmatch(page)
	if dropIn == nil {
		t.Fatal("docs/install.md: want the drop-in of a credential, got none")
	}
	setting := regexp.MustCompile(`Environment=(\w+)=`).FindSubmatch(dropIn[1])
	if setting == nil || !slices.Contains(config.SecretFileVariables(), string(setting[1])) {
		t.Errorf("drop-in of docs/install.md: got\n%s\nwant a setting that names the file of a secret", dropIn[1])
	}
	folder := filepath.Join(units, "berth-worker.service.d")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "credential.conf"), dropIn[1], 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestServices_HaveTheRestrictionsOfADynamicUser checks the restrictions that systemd.exec(5) names for
// DynamicUser=, which the services do not use.
func TestServices_HaveTheRestrictionsOfADynamicUser(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("systemd/berth-.service.d/hardening.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"User=berth",
		"RemoveIPC=yes",
		"PrivateTmp=yes",
		"NoNewPrivileges=yes",
		"RestrictSUIDSGID=yes",
		"ProtectSystem=strict",
		"ProtectHome=yes",
	} {
		if !slices.Contains(strings.Split(string(raw), "\n"), want) {
			t.Errorf("restrictions of the services: want %s, got\n%s", want, raw)
		}
	}
}

// analyze runs systemd-analyze, which finds units in the given folder. The command must succeed; verify must
// also print nothing.
func analyze(t *testing.T, units string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "systemd-analyze", args...)
	// the empty last part names systemd's own folders
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+units+":")
	out, err := cmd.CombinedOutput()
	if err != nil || args[0] == "verify" && len(out) > 0 {
		t.Errorf("systemd-analyze %s: got error %v and the output\n%s", strings.Join(args, " "), err, out)
	}
}

// TestRelease_ImageRunsAsTheImageOfTheSource compares the Dockerfile of a release with the Dockerfile that
// builds from source.
func TestRelease_ImageRunsAsTheImageOfTheSource(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("image/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	f := readRepository(t)
	got, want := parseDockerfile(string(raw)), parseDockerfile(f[dockerfile])
	for _, word := range []string{"USER", "WORKDIR", "EXPOSE", "HEALTHCHECK", "CMD"} {
		// The last instruction is in force: WORKDIR also occurs in the stage that builds the programs.
		if d := cmp.Diff(last(want[word]), last(got[word])); d != "" {
			t.Errorf(
				"instruction %s of deploy/image/Dockerfile (-Dockerfile +deploy/image/Dockerfile):\n%s",
				word,
				d,
			)
		}
	}
	base := func(from []string) (images []string) {
		for _, f := range from {
			image, _, _ := strings.Cut(f, " ")
			images = append(images, image)
		}
		return images
	}
	if d := cmp.Diff(base(want["FROM"]), base(got["FROM"])); d != "" {
		t.Errorf("base images of deploy/image/Dockerfile (-Dockerfile +deploy/image/Dockerfile):\n%s", d)
	}
}

// last returns the last element of a list as a list.
func last(all []string) []string { return all[max(0, len(all)-1):] }

func TestRelease_RefusedWithoutAVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.4": "is not a version", "next; rm": "is not a version"} {
		if out, err := script(t, []string{"VERSION=" + version}, "release.sh", "-o", t.TempDir()); err == nil ||
			!strings.Contains(out, want) {
			t.Errorf("release with VERSION=%q: got error %v and the output %s, want an error with %q",
				version, err, out, want)
		}
	}
}

// TestBuild_ProgramNamesVersionAndCommit builds starter as the targets build and release do, and reads the
// version, the commit and its date.
func TestBuild_ProgramNamesVersionAndCommit(t *testing.T) {
	t.Parallel()
	flags, err := script(t, []string{"VERSION=v9.8.7"}, "ldflags.sh")
	if err != nil {
		t.Fatalf("tools/ldflags.sh: %v\n%s", err, flags)
	}
	program := filepath.Join(t.TempDir(), "starter")
	output(t, "go", "build", "-ldflags", strings.TrimSpace(flags), "-o", program, "berth/starter")
	commit, date := "unknown", "unknown"
	if head, err := exec.CommandContext(t.Context(), "git", "log", "-1", "--format=%H %ct").Output(); err == nil {
		var made string
		commit, made, _ = strings.Cut(strings.TrimSpace(string(head)), " ")
		seconds, err := strconv.ParseInt(made, 10, 64)
		if err != nil {
			t.Fatalf("time of the commit: %v", err)
		}
		date = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	got, want := output(t, program, "--version"), "starter 9.8.7\ncommit "+commit
	if !strings.HasPrefix(got, want) || !strings.Contains(got, " of "+date+"\n") {
		t.Errorf("starter --version: got\n%s\nwant the beginning\n%s\nand the date %s", got, want, date)
	}
	for _, name := range []string{"Makefile", "tools/release.sh"} {
		if raw, err := os.ReadFile(filepath.Join("..", name)); err != nil ||
			!strings.Contains(string(raw), "tools/ldflags.sh)") {
			t.Errorf("%s (read error %v): want that it builds with the flags of tools/ldflags.sh", name, err)
		}
	}
}

// TestServices_OfThePackageRunEachRoleOnce checks the systemd services: each role runs in one service, the
// programs accept the commands, and the settings of the services are known and have different addresses.
func TestServices_OfThePackageRunEachRoleOnce(t *testing.T) {
	t.Parallel()
	var roles, addresses []string
	for _, name := range []string{"api", "worker", "rpc", "migrate"} {
		raw, err := os.ReadFile("systemd/berth-" + name + ".service")
		if err != nil {
			t.Fatal(err)
		}
		start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/(.+)$`).FindSubmatch(raw)
		if start == nil {
			t.Fatalf("service %s: want ExecStart with a program in /usr/bin, got none", name)
		}
		command := strings.Fields(string(start[1]))
		if err := parseArguments(command); err != nil {
			t.Errorf("service %s: %v", name, err)
		}
		if len(command) == 3 && command[1] == "-roles" {
			roles = append(roles, strings.Split(command[2], ",")...)
		}
		var env []string
		for _, file := range regexp.MustCompile(`(?m)^EnvironmentFile=/etc/berth/(.+)$`).FindAllSubmatch(raw, -1) {
			env = append(env, readEnvironment(t, "debian/"+string(file[1]))...)
		}
		addresses = append(addresses, checkPackagedSettings(t, name, env))
	}
	slices.Sort(roles)
	if d := cmp.Diff([]string{"api", "relay", "rpc", "temporal"}, roles); d != "" {
		t.Errorf("roles of the services (-want +got):\n%s", d)
	}
	slices.Sort(addresses[:3])
	if len(slices.Compact(addresses[:3])) != 3 {
		t.Errorf("addresses of the services: got %q, want three different addresses", addresses[:3])
	}
}

// checkPackagedSettings checks that a program reads each setting, and returns the value of BERTH_LISTEN.
func checkPackagedSettings(t *testing.T, service string, env []string) string {
	t.Helper()
	known := append(config.Variables(), "PGPASSWORD", "GOMEMLIMIT", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE")
	for _, line := range env {
		if name, _, _ := strings.Cut(line, "="); !slices.Contains(known, name) {
			t.Errorf("service %s: no program reads %s", service, name)
		}
	}
	complete := append(
		slices.Clone(env), "OS_AUTH_URL=http://keystone:5000/v3",
		"OS_USERNAME=berth", "OS_PASSWORD=secret", "OS_PROJECT_NAME=service",
	)
	cfg, err := config.Load(complete)
	if err != nil {
		t.Errorf("service %s: load the settings of the package: %v", service, err)
	}
	return cfg.Listen
}

// readEnvironment returns the lines NAME=value of an environment file.
func readEnvironment(t *testing.T, name string) (lines []string) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.Contains(line, "=") {
			t.Error(fmt.Errorf("file %s: got the line %q, want NAME=value", name, line))
		}
		lines = append(lines, line)
	}
	return lines
}

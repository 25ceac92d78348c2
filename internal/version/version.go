// Package version says which version of berth a program is, and which versions of the HTTP APIs it speaks. A
// release sets the version, the commit and its date with the linker; any other build has the values that Go's
// toolchain records.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
)

// The build of a release sets these variables with -ldflags "-X berth/internal/version.number=…" and so on.
var (
	number string
	commit string
	date   string
)

// unknown is the value of a field that the program does not know.
const unknown = "unknown"

// develVersion is the version of a program that is no release.
const develVersion = "0.0.0-devel"

// Info describes the build of a program.
type Info struct {
	Version    string // for example 1.4.0; without the leading v of the git tag
	Commit     string // git commit of the source; "unknown" without a git repository
	CommitDate string // when the commit was made, in RFC 3339 and UTC; "unknown" without a git repository
	Go         string // version of Go's toolchain, operating system and architecture
}

// Read returns the description of this program.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return describe(Info{Version: number, Commit: commit, CommitDate: date}, build)
}

// describe completes `info`, which contains what the linker has set, with the given build information.
func describe(info Info, build *debug.BuildInfo) Info {
	info.Go = runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if info.Version == "" {
		info.Version = strings.TrimPrefix(build.Main.Version, "v")
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = develVersion
	}
	if info.Commit == "" {
		info.Commit, info.CommitDate = recordedCommit(build)
	}
	info.CommitDate = cmp.Or(info.CommitDate, unknown)
	return info
}

// recordedCommit returns the commit that Go's toolchain has recorded, and when it was made. The commit has
// the suffix -dirty if the source had changes that were not committed.
func recordedCommit(build *debug.BuildInfo) (revision, date string) {
	modified := false
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			date = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if revision == "" {
		return unknown, unknown
	}
	if modified {
		revision += "-dirty"
	}
	return revision, date
}

// BuildID returns the build ID of the program in Temporal's Worker Versioning: the version, and for a program
// that is no release also the first digits of the commit.
func (i Info) BuildID() string {
	if i.Version != develVersion {
		return i.Version
	}
	return i.Version + "-" + i.Commit[:min(len(i.Commit), 12)]
}

// Text returns the output of the flag --version for the program with the given name. The parameter `schema`
// describes the database schemas with which the program works.
func (i Info) Text(program, schema string) string {
	return program + " " + i.Version + "\ncommit " + i.Commit + " of " + i.CommitDate + "\nbuilt with " + i.Go + "\n" + schema + "\nAPIs: " + APIText() + "\n"
}

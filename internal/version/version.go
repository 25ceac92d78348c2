// Package version says which version of berth a program is, and which versions of the HTTP APIs it speaks. A
// release sets the version and the commit with the linker; any other build has the version and the commit
// that Go's toolchain records.
package version

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// The build of a release sets these variables with -ldflags "-X berth/internal/version.number=… -X
// berth/internal/version.commit=…".
var (
	number string
	commit string
)

// unknown is the value of a field that the program does not know.
const unknown = "unknown"

// develVersion is the version of a program that is no release.
const develVersion = "0.0.0-devel"

// Info describes the build of a program.
type Info struct {
	Version string // for example 1.4.0; without the leading v of the git tag
	Commit  string // git commit of the source; "unknown" without a git repository
	Go      string // version of Go's toolchain, operating system and architecture
}

// Read returns the description of this program.
func Read() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{}
	}
	return describe(number, commit, build)
}

// describe returns the description of the program with the given build information. The parameters `number`
// and `commit` replace the values of the build information, unless they are empty.
func describe(number, commit string, build *debug.BuildInfo) Info {
	info := Info{
		Version: number,
		Commit:  commit,
		Go:      strings.Join([]string{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, " "),
	}
	if info.Version == "" {
		info.Version = strings.TrimPrefix(build.Main.Version, "v")
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = develVersion
	}
	if info.Commit == "" {
		info.Commit = recordedCommit(build)
	}
	return info
}

// recordedCommit returns the commit that Go's toolchain has recorded. The commit has the suffix -dirty if the
// source had changes that were not committed.
func recordedCommit(build *debug.BuildInfo) string {
	revision, modified := unknown, false
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if revision != unknown && modified {
		revision += "-dirty"
	}
	return revision
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
	return program + " " + i.Version + "\ncommit " + i.Commit + "\nbuilt with " + i.Go + "\n" + schema + "\nAPIs: " + APIText() + "\n"
}

package version

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe_ReleaseReplacesWhatTheToolchainRecorded(t *testing.T) {
	t.Parallel()
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: "a1b2"},
			{Key: "vcs.modified", Value: modified},
		}
	}
	for _, c := range []struct {
		name, number, commit string
		build                debug.BuildInfo
		version, revision    string
	}{
		{
			name:     "release",
			number:   "1.4.0",
			commit:   "c0ffee",
			build:    debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-1"}, Settings: settings("true")},
			version:  "1.4.0",
			revision: "c0ffee",
		},
		{
			name:     "go build of a tag",
			build:    debug.BuildInfo{Main: debug.Module{Version: "v1.3.0"}, Settings: settings("false")},
			version:  "1.3.0",
			revision: "a1b2",
		},
		{
			name:     "go build of a changed tree",
			build:    debug.BuildInfo{Main: debug.Module{Version: "v1.3.0+dirty"}, Settings: settings("true")},
			version:  "1.3.0+dirty",
			revision: "a1b2-dirty",
		},
		{
			name:     "without a repository",
			build:    debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			version:  "0.0.0-devel",
			revision: "unknown",
		},
		{name: "without build information", version: "0.0.0-devel", revision: "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := Info{
				Version: c.version,
				Commit:  c.revision,
				Go:      runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
			}
			if d := cmp.Diff(want, describe(c.number, c.commit, &c.build)); d != "" {
				t.Errorf("description of the build (-want +got):\n%s", d)
			}
		})
	}
}

func TestBuildID_NamesTheCommitOnlyOfAProgramThatIsNoRelease(t *testing.T) {
	t.Parallel()
	for want, info := range map[string]Info{
		"1.4.0":                    {Version: "1.4.0", Commit: "0123456789abcdef"},
		"0.0.0-devel-0123456789ab": {Version: "0.0.0-devel", Commit: "0123456789abcdef"},
		"0.0.0-devel-unknown":      {Version: "0.0.0-devel", Commit: "unknown"},
	} {
		if got := info.BuildID(); got != want {
			t.Errorf("build ID of %+v: got %q, want %q", info, got, want)
		}
	}
}

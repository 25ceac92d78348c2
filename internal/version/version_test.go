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
			{Key: "vcs.time", Value: "2026-05-04T03:02:01Z"},
			{Key: "vcs.modified", Value: modified},
		}
	}
	for _, c := range []struct {
		name   string
		linked Info
		build  debug.BuildInfo
		want   Info
	}{
		{
			name:   "release",
			linked: Info{Version: "1.4.0", Commit: "c0ffee", CommitDate: "2026-06-07T08:09:10Z"},
			build:  debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-1"}, Settings: settings("true")},
			want:   Info{Version: "1.4.0", Commit: "c0ffee", CommitDate: "2026-06-07T08:09:10Z"},
		},
		{
			name:   "release without a date",
			linked: Info{Version: "1.4.0", Commit: "c0ffee"},
			build:  debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-1"}, Settings: settings("true")},
			want:   Info{Version: "1.4.0", Commit: "c0ffee", CommitDate: "unknown"},
		},
		{
			name:  "go build of a tag",
			build: debug.BuildInfo{Main: debug.Module{Version: "v1.3.0"}, Settings: settings("false")},
			want:  Info{Version: "1.3.0", Commit: "a1b2", CommitDate: "2026-05-04T03:02:01Z"},
		},
		{
			name:  "go build of a changed tree",
			build: debug.BuildInfo{Main: debug.Module{Version: "v1.3.0+dirty"}, Settings: settings("true")},
			want:  Info{Version: "1.3.0+dirty", Commit: "a1b2-dirty", CommitDate: "2026-05-04T03:02:01Z"},
		},
		{
			name:  "without a repository",
			build: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:  Info{Version: "0.0.0-devel", Commit: "unknown", CommitDate: "unknown"},
		},
		{
			name: "without build information",
			want: Info{Version: "0.0.0-devel", Commit: "unknown", CommitDate: "unknown"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			want.Go = runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
			if d := cmp.Diff(want, describe(c.linked, &c.build)); d != "" {
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

package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/config"
)

func TestAddresses_ReadReturnsWhatWriteWrote(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if none, err := config.ReadAddresses(data); none != nil || err != nil {
		t.Errorf("read addresses without a file: got %v, %v, want neither values nor an error", none, err)
	}
	want := map[string]string{"BERTH_LISTEN": "127.0.0.1:1", "BERTH_DATABASE_URL": "postgres://a:b'c@h/d?e=f"}

	if err := config.WriteAddresses(data, want); err != nil {
		t.Fatal(err)
	}
	got, err := config.ReadAddresses(data)

	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("addresses that were written and read (-want +got):\n%s", d)
	}
	if err := config.RemoveAddresses(data); err != nil {
		t.Error(err)
	}
	if err := config.RemoveAddresses(data); err != nil {
		t.Errorf("remove addresses a second time: got error %v, want none", err)
	}
}

// Another user can move a folder of his own to the name of the data folder while starter looks.
func TestReadOwnAddresses_FolderThatAppearsMeanwhileIsNotTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hidden, data := filepath.Join(dir, "hidden"), filepath.Join(dir, "data")
	if err := os.Mkdir(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteAddresses(hidden, map[string]string{"BERTH_URL": "http://192.0.2.1:1"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(hidden, 0o777); err != nil { // as if it belonged to another user
		t.Fatal(err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_ = os.Rename(hidden, data)
				_ = os.Rename(data, hidden)
			}
		}
	}()
	refused := 0
	for range 20_000 {
		values, err := config.ReadOwnAddresses(data)
		if len(values) > 0 {
			t.Errorf("folder that others can change: got the addresses %v, want none", values)
			break
		}
		if err != nil {
			refused++
		}
	}
	close(done)
	<-ended
	t.Logf("%d of the reads met the folder", refused)
}

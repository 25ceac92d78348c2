package config_test

import (
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

package cli

import (
	"strings"
	"testing"
)

func TestWriteTable_AlignsWideCharacters(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := WriteTable(&b, []string{"name", "status"}, [][]string{{"計算", "ACTIVE"}, {"e\u0301", "DOWN"}}); err != nil {
		t.Fatal(err)
	}
	if want := "NAME  STATUS\n計算  ACTIVE\ne\u0301     DOWN\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

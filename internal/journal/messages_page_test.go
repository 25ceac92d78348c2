package journal

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/docpage"
)

func TestMessagesPage_NamesTheCollectionsOfTheController(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, k := range objectTypes {
		want[k.typ] = []string{k.collection}
	}
	if d := cmp.Diff(want, docpage.Table(t, docpage.Messages, "### Changes for the controller")); d != "" {
		t.Errorf("the collections in %s differ from the types of objects (-code +page):\n%s",
			docpage.Messages, d)
	}
}

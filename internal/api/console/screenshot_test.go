package console_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"berth/internal/store/storetest"
)

var screenshots = flag.String("screenshots", "",
	"folder into which TestScreenshots writes the pictures of the documentation")

// documented lists the pages of which the documentation has a picture.
var documented = []string{"waiting", "port", "calendar", "journal", "projections"}

// maxPicture is the maximum size of a picture, in bytes.
const maxPicture = 150_000

// picturesque gives the objects of an estate the names, ages and history that objects have after some days of
// work.
const picturesque = `
	update port set name = 'cache' where name like '<%';
	update journal_entry set name = 'cache' where name like '<%';
	update block set since = since - interval '4 minutes' where entity = 'L2' and host = 'cmp-1';
	insert into journal_entry (object_type, object_id, operation, data, parents, project, name, state, created_at, finished_at)
	select 'port', md5(i::text), 'create', '{}', '{}', 'demo', '', 'completed', now() - i * interval '40 seconds', now() - i * interval '40 seconds' + (abs(sin(i / 9.0)) * 2 + 0.2) * interval '1 second'
	from generate_series(1, 150) i;`

// TestScreenshots writes the pictures of the documentation if a folder is given. Otherwise it checks that the
// pictures exist and are small.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	if *screenshots != "" {
		e := newEstate(t)
		storetest.ExecScript(t, e.url, picturesque)
		b := openTab(t, e)
		b.logIn("admin")
		for _, name := range documented {
			b.open(e.paths()[name])
			b.await("live", `document.querySelector("#live-state").textContent === "Live"`)
			var picture []byte
			b.run(chromedp.FullScreenshot(&picture, 100))
			e.check(os.WriteFile(filepath.Join(*screenshots, "console-"+name+".png"), picture, 0o644))
		}
	}
	for _, name := range documented {
		file, err := os.Stat("../../../docs/images/console-" + name + ".png")
		if err != nil || file.Size() > maxPicture {
			t.Errorf(
				"picture of the page %s: got %v, error %v; want a file of at most %d bytes: run make screenshots",
				name, file, err, maxPicture,
			)
		}
	}
}

package console_test

import (
	"context"
	_ "embed"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"berth/internal/identity"
	"berth/internal/store/storetest"
)

// axe is axe-core, which checks a page against the rules of WCAG. Only the tests use it.
//
//go:embed testdata/axe.min.js
var axe string

// patience is the maximum time that a test waits for the browser. It is large because the machine that runs
// the tests may be slow.
const patience = 5 * time.Minute

// tab is a tab of a real Chromium that shows the console of an estate.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // URL of the server

	mutex sync.Mutex
	// violations of the Content-Security-Policy, errors of scripts and other errors in the browser's log
	problems []string
}

// openTab starts a Chromium with an empty profile, and serves the console of the estate to it.
func openTab(t *testing.T, e *estate) *tab {
	t.Helper()
	return openTabWith(t, e, identity.Noauth{})
}

// openTabWith is openTab with another authenticator.
func openTabWith(t *testing.T, e *estate, id identity.Authenticator) *tab {
	t.Helper()
	e.live.Interval, e.projects.Interval = 100*time.Millisecond, 100*time.Millisecond
	server := httptest.NewServer(e.console(id))
	t.Cleanup(server.Close)
	t.Cleanup(e.live.Stop)
	t.Cleanup(e.projects.Stop)
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf(
			"the tests of the console need Debian's package chromium, which tools/deps.sh installs: %v",
			err,
		)
	}
	profile, err := os.MkdirTemp("", "berth-chromium-")
	e.check(err)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.NoFirstRun,
		chromedp.NoSandbox,
		chromedp.Headless,
		chromedp.DisableGPU,
		chromedp.WindowSize(1280, 900),
		chromedp.WSURLReadTimeout(patience),
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	t.Cleanup(func() { // Chromium's helper processes may write for a moment after Chromium has ended
		for deadline := time.Now().Add(patience); os.RemoveAll(profile) != nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	b := &tab{t: t, ctx: ctx, base: server.URL}
	chromedp.ListenTarget(ctx, b.listen)
	b.run(log.Enable(), runtime.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(`addEventListener("securitypolicyviolation", function (e) {
			console.error("Content-Security-Policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile + ":" + e.lineNumber); });`).
			Do(ctx)
		return err
	}))
	return b
}

// listen records what the browser reports as a problem.
func (b *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && !strings.Contains(e.Entry.Text, "status of 40") {
			text = e.Entry.Text + " " + e.Entry.URL
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError {
			for _, a := range e.Args {
				text += string(a.Value) + a.Description
			}
		}
	}
	if text != "" {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		b.problems = append(b.problems, text)
	}
}

// checkProblems fails the test if the browser has reported a problem since the last call.
func (b *tab) checkProblems(what string) {
	b.t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, p := range b.problems {
		b.t.Errorf("%s: the browser reports: %s", what, p)
	}
	b.problems = nil
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page and waits until its scripts have run.
func (b *tab) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base+path), chromedp.WaitReady("main"))
}

// value evaluates a JavaScript expression.
func value[T any](b *tab, js string) (v T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(js, &v))
	return v
}

// await waits until the page is loaded and a JavaScript expression is true. An exception means that the
// expression is not true yet: during a navigation, elements of the page are missing, or the browser replaces
// the page.
func (b *tab) await(what, js string) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var reached bool
		err := chromedp.Run(b.ctx,
			chromedp.Evaluate(`document.readyState === "complete" && (`+js+`)`, &reached))
		if err == nil && reached {
			return
		}
		if b.ctx.Err() != nil || time.Now().After(deadline) {
			b.t.Fatalf("the page does not reach the state: %s (%v)\n%s",
				what, err, value[string](b, `document.body.innerText`))
		}
	}
}

// logIn logs in with the form.
func (b *tab) logIn(token string) {
	b.t.Helper()
	b.open("/console/login")
	b.run(chromedp.SendKeys("#token", token+kb.Enter))
	b.await("the first page", `location.pathname === "/console/" && document.querySelector(".logout") !== null`)
	b.await("live, if the page is", `(document.querySelector("#live-state")?.textContent ?? "Live") === "Live"`)
}

func (b *tab) logOut() {
	b.t.Helper()
	b.run(chromedp.Click(".logout button"))
	b.await("the login form", `location.pathname === "/console/login"`)
}

// checkAccessibility runs axe-core on the present page in the light and in the dark colours.
func (b *tab) checkAccessibility(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.run(
			emulation.SetEmulatedMedia().
				WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
			chromedp.Evaluate(axe, nil),
		)
		var found []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
		b.run(chromedp.Evaluate(
			`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(r => r.violations)`,
			&found,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) },
		))
		for _, v := range found {
			for _, n := range v.Nodes {
				b.t.Errorf("page %s in the %s colours: %s (%s): %s: %.300s\n%s",
					name, scheme, v.Help, v.Impact, v.ID, n.HTML, n.FailureSummary)
			}
		}
	}
}

func TestBrowser_EveryPageIsAccessibleAndObeysThePolicy(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	storetest.Exec(t, e.url, `update agent set heartbeat_at = now() - interval '9 minutes' where host = 'cmp-2'`)
	b := openTab(t, e)
	b.open("/console/login")
	b.checkProblems("login")
	b.checkAccessibility("login")
	b.logIn("admin")
	for name, path := range e.paths() {
		b.open(path)
		if name != "pause" { // the form is not live
			b.await("live", `document.querySelector("#live-state").textContent === "Live"`)
		}
		b.checkProblems(name)
		b.checkAccessibility(name)
		if title := value[string](b, `document.title`); !strings.HasSuffix(title, "– berth") {
			t.Errorf("page %s: got the title %q, want one that ends with berth", name, title)
		}
	}
	b.problemsDuringAxe()
	b.logOut()
	b.logIn("ann:demo")
	for name, path := range e.projectPaths() {
		b.open(path)
		b.await("live", `document.querySelector("#live-state").textContent === "Live"`)
		b.checkProblems("project: " + name)
		b.checkAccessibility("project: " + name)
	}
	b.problemsDuringAxe()
	b.logOut()
	b.open("/console/")
	if got := value[string](b, `document.querySelector("h1").textContent`); got != "Log in" {
		t.Errorf("the first page after the logout: got %q, want the login form", got)
	}
}

// narrow is the width of the narrowest screen on which the pages need no horizontal scrolling (WCAG 1.4.10),
// in CSS pixels. Pictures and tables scroll in their own regions.
const narrow = 320

func TestBrowser_EveryPageFitsANarrowScreen(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	storetest.Exec(t, e.url, `update agent set heartbeat_at = now() - interval '9 minutes' where host = 'cmp-2'`)
	b := openTab(t, e)
	for token, paths := range map[string]map[string]string{"admin": e.paths(), "ann:demo": e.projectPaths()} {
		b.logIn(token)
		b.run(chromedp.EmulateViewport(narrow, 640))
		for name, path := range paths {
			b.open(path)
			if got := value[int](b, `document.documentElement.scrollWidth`); got > narrow {
				t.Errorf("page %s for %s on a screen of %d pixels: got the width %d, want no horizontal scrolling",
					name, token, narrow, got)
			}
		}
	}
}

// problemsDuringAxe forgets the problems that axe-core itself has caused.
func (b *tab) problemsDuringAxe() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.problems = nil
}

func TestBrowser_ChangesArriveWithoutReload(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	b := openTab(t, e)
	b.logIn("admin")
	row := `[...document.querySelectorAll("tbody tr")].find(r => r.cells[0].textContent === "L2 on cmp-1")`
	b.run(chromedp.Evaluate(`window.notReloaded = true; `+row+`.querySelector("a").focus()`, nil))
	e.createPort("api", "cmp-1")
	b.await("the new port is counted", row+`.cells[1].textContent === "2 × port"`)
	const kept = `window.notReloaded === true && document.activeElement.textContent === "L2 on cmp-1"`
	if !value[bool](b, kept) {
		t.Error("after a live change: want no reload and the focus on the same link")
	}
	b.run(chromedp.Evaluate(`document.body.addEventListener("htmx:sseBeforeMessage",
		e => { window.arrived = e.detail.data.includes("3 × port") })`, nil))
	b.run(chromedp.Click("#pause"))
	b.await("paused", `document.querySelector("#live-state").textContent === "Paused"`)
	e.createPort("cache", "cmp-1")
	seen := e.createPort("queue", "cmp-2")
	b.await("the change arrives", `window.arrived === true`)
	if got := value[string](b, row+`.cells[1].textContent`); got != "2 × port" {
		t.Errorf("during the pause: got %s, want the content before the pause", got)
	}
	b.run(chromedp.Click("#pause"))
	b.await("the changes during the pause", row+`.cells[1].textContent === "3 × port"`)
	b.open("/console/ports/" + seen.ID.String())
	b.await("live", `document.querySelector("#live-state").textContent === "Live"`)
	e.check(e.Network.DeletePort(t.Context(), seen.ID, nil))
	b.await("the failure is shown",
		`document.querySelector("#live-state").textContent.startsWith("berth cannot read this page")`)
	b.checkProblems("live pages")
	b.logOut()
	b.logIn("ann:demo")
	b.run(chromedp.Evaluate(`window.notReloaded = true`, nil))
	e.createPort("of the project", "cmp-1")
	b.await("the project's new port", `window.notReloaded === true && document.querySelector("main").textContent.includes("of the project")`)
	b.checkProblems("live pages of a project")
}

func TestBrowser_KeyboardAlone(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	b := openTab(t, e)
	b.open("/console/")
	focus := func() string {
		return value[string](b, `document.activeElement.textContent.trim() || document.activeElement.id`)
	}
	press := func(keys string) { b.t.Helper(); b.run(chromedp.KeyEvent(keys)) }
	tabTo := func(text string) {
		t.Helper()
		for range 60 {
			if press(kb.Tab); focus() == text {
				return
			}
		}
		t.Fatalf("60 presses of Tab do not reach %q", text)
	}
	tabTo("token")
	press("admin" + kb.Enter)
	b.await("the first page", `document.querySelector("#live-state")?.textContent === "Live"`)
	tabTo("Skip to the content")
	press(kb.Enter)
	tabTo("L2 on cmp-1")
	if !value[bool](b, `getComputedStyle(document.activeElement).outlineStyle === "solid"`) {
		t.Error("the focused link has no visible outline")
	}
	press(kb.Enter)
	b.await("the page of the waiting objects", `location.pathname === "/console/waiting/agent"`)
	tabTo("web")
	press(kb.Enter)
	b.await("the page of the port", `document.querySelector("h1").textContent === "Port web"`)
	why := value[string](b, `document.querySelector("#why").textContent`)
	if !strings.Contains(why, "it waits for L2 on cmp-1") {
		t.Errorf("the page of the port says %q, want the agents for which it waits", why)
	}
}

func TestBrowser_ReadsWithoutJavaScript(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	b := openTab(t, e)
	b.run(emulation.SetScriptExecutionDisabled(true))
	b.open("/console/")
	b.run(chromedp.SendKeys("#token", "admin"),
		chromedp.Click(".login button"), chromedp.WaitVisible(".cards"))
	var text string
	b.run(chromedp.Text("main", &text))
	if !strings.Contains(text, "L2 on cmp-1") || !strings.Contains(text, "Reload the page to update it.") {
		t.Errorf(
			"the first page without JavaScript: got %s, want what waits and how to update the page",
			text,
		)
	}
	b.run(chromedp.Click(".logout button"), chromedp.WaitVisible(".login"),
		chromedp.SendKeys("#token", "ann:demo"),
		chromedp.Click(".login button"), chromedp.WaitVisible("table"), chromedp.Text("main", &text))
	if !strings.Contains(text, "lonely") || !strings.Contains(text, "Reload the page to update it.") {
		t.Errorf("the first page of a project without JavaScript: got %s, want the ports that wait", text)
	}
	b.run(chromedp.Click(`th a`), chromedp.WaitVisible("#why"), chromedp.Text("main", &text))
	if !strings.Contains(text, "Timeline") {
		t.Errorf("the page of a port without JavaScript: got %s, want its timeline", text)
	}
}

func TestBrowser_LogsInWithAPassword(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	b := openTabWith(t, e, &keystone{tokens: callersByToken, token: "ann"})
	b.run(chromedp.EmulateViewport(narrow, 640))
	b.open("/console/leases")
	b.checkProblems("login")
	b.checkAccessibility("login with a password")
	b.problemsDuringAxe()
	if got := value[int](b, `document.documentElement.scrollWidth`); got > narrow {
		t.Errorf("the login form on a screen of %d pixels: got the width %d, want no horizontal scrolling", narrow, got)
	}
	b.run(chromedp.SendKeys("#user", "ann"), chromedp.SendKeys("#project", "demo"),
		chromedp.SendKeys("#password", "wrong"+kb.Enter))
	b.await("the refusal", `document.querySelector("#problem") !== null`)
	b.checkAccessibility("refused login with a password")
	kept := value[string](b, `["user", "password", "project", "user-domain"].map(id => document.getElementById(id).value).join("|")`)
	if kept != "ann||demo|Default" {
		t.Errorf("the form after a refusal: got %s, want the names without the password", kept)
	}
	b.run(chromedp.SendKeys("#password", "s3cret"+kb.Enter))
	b.await("the page that the user wanted to see", `location.pathname === "/console/leases"`)
	b.logOut()
}

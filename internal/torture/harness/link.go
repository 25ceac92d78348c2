package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"berth/internal/devstack"
)

// init turns off the logger of toxiproxy's toxics, which write every interruption to stderr.
func init() { zerolog.SetGlobalLevel(zerolog.Disabled) }

// Link is a TCP proxy between processes of berth and a server. A test cuts, stalls or slows the connections
// through the link.
type Link struct{ *toxiproxy.Proxy }

// NewLink starts a proxy on a free port of loopback; `upstream` is the host and port of the server.
func NewLink(t *testing.T, upstream string) Link {
	t.Helper()
	port, err := devstack.Port(0)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := Link{toxiproxy.NewProxy(server, "link", fmt.Sprintf("127.0.0.1:%d", port), upstream)}
	if err := l.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}

// cut closes all connections.
func (l Link) cut() error {
	l.Stop()
	return l.Start()
}

// stall drops all bytes in both directions, so that both ends wait. When heal is called, the stalled
// connections end.
func (l Link) stall() error { return l.add("timeout", "") }

// Slow delays every packet of the answers by a random time between the given number of milliseconds and twice
// that number.
func (l Link) Slow(milliseconds int) error {
	return l.add("latency",
		fmt.Sprintf(`"latency":%d,"jitter":%d`, milliseconds+milliseconds/2, milliseconds/2))
}

// throttle limits the rate of the answers to the given number of kilobytes per second.
func (l Link) throttle(kilobytes int) error {
	return l.add("bandwidth", fmt.Sprintf(`"rate":%d`, kilobytes))
}

func (l Link) add(kind, attributes string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		if kind != "timeout" && stream == "upstream" {
			continue
		}
		toxic := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
		if _, err := l.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return fmt.Errorf("add the toxic %s: %w", toxic, err)
		}
	}
	return nil
}

// heal ends the effects of stall, slow and throttle.
func (l Link) heal() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	l.Toxics.ResetToxics(ctx)
	return nil
}

package diagnosis

import (
	"context"
	"fmt"

	"berth/starter/cli"
)

// checkHosts warns about hosts that a lease keeps because the end of the lease has failed.
func checkHosts(ctx context.Context, s *cli.Session) (string, error) {
	var o struct {
		Hosts []struct {
			Name       string `json:"hypervisor_hostname"`
			Quarantine any    `json:"berth:quarantine"`
		}
	}
	if err := readAPI(ctx, s, "/reservation/v1/os-hosts", &o); err != nil {
		return "", err
	}
	quarantined, example := 0, ""
	for _, h := range o.Hosts {
		if h.Quarantine != nil {
			quarantined++
			example = h.Name
		}
	}
	if quarantined > 0 {
		return "", fmt.Errorf(
			"%w: %d of %d hosts are in quarantine, for example %s; `starter host list` names the lease and the failed call",
			errWarning, quarantined, len(o.Hosts), example,
		)
	}
	return "no host is in quarantine", nil
}

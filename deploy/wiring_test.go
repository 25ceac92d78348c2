package deploy_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ports must lead to where the process listens, and only those that ask who calls are published beyond loopback.
func ports(s service) (found []string) {
	for _, published := range s.Ports {
		parts := strings.Split(published, ":")
		inside := parts[len(parts)-1]
		if s.ours() {
			if !strings.HasSuffix(s.Environment["BERTH_LISTEN"], ":"+inside) {
				found = append(found, "port "+inside+" is published, but BERTH_LISTEN is "+s.Environment["BERTH_LISTEN"])
			}
		} else if parts[0] != "127.0.0.1" {
			found = append(found, "port "+inside+" is published beyond loopback")
		}
	}
	return found
}

// mounts must have a source, and paths that are used a mount.
func mounts(f files, c compose, s service) (found []string) {
	var targets []string
	for _, volume := range s.Volumes {
		parts := strings.Split(volume, ":")
		targets = append(targets, parts[1])
		if _, named := c.Volumes[parts[0]]; named {
			continue
		}
		info, err := os.Stat(filepath.Join("..", parts[0]))
		switch {
		case err != nil:
			found = append(found, "no file "+parts[0])
		case strings.HasSuffix(parts[0], ".sh") && info.Mode()&0o111 == 0:
			found = append(found, parts[0]+" is not executable")
		case strings.HasSuffix(parts[0], ".sh") && !strings.HasPrefix(f[strings.TrimPrefix(parts[0], "./")], "#!/bin/sh\n"):
			found = append(found, parts[0]+" is no shell script")
		}
	}
	for _, used := range append(slices.Clone(s.Command), slices.Collect(maps.Values(s.Environment))...) {
		if strings.HasPrefix(used, "/") && !slices.Contains(targets, used) {
			found = append(found, "nothing is mounted at "+used)
		}
	}
	return found
}

func dependencies(c compose, s service) (found []string) {
	if !slices.Contains([]string{"unless-stopped", "on-failure:5"}, s.Restart) {
		found = append(found, "restart: "+s.Restart)
	}
	for name, on := range s.DependsOn {
		other, there := c.Services[name]
		switch {
		case !there:
			found = append(found, "no service "+name)
		case on.Condition == "service_healthy" && len(other.Healthcheck.Test) == 0:
			found = append(found, name+" has no health check")
		case on.Condition == "service_completed_successfully" && !other.once():
			found = append(found, name+" does not end")
		case on.Condition != "service_healthy" && on.Condition != "service_completed_successfully":
			found = append(found, name+": condition "+on.Condition)
		}
	}
	return found
}

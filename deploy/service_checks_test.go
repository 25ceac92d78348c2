package deploy_test

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// checkPorts checks that the process of a service of berth listens on the ports that the service publishes.
// checkPorts also checks that only the broker with TLS publishes a port on another address than loopback.
func checkPorts(f files, s service) (found []string) {
	for _, published := range s.Ports {
		parts := strings.Split(published, ":")
		port := parts[len(parts)-1]
		if s.isBerth() {
			if !strings.HasSuffix(s.Environment["BERTH_LISTEN"], ":"+port) &&
				!strings.HasSuffix(s.Environment["BERTH_OPERATOR_LISTEN"], ":"+port) {
				found = append(found,
					"port "+port+" is published, but BERTH_LISTEN is "+s.Environment["BERTH_LISTEN"])
			}
		}
		if parts[0] != "127.0.0.1" && !isSecureBroker(f, s) {
			found = append(found, "port "+port+" is published beyond loopback")
		}
	}
	return found
}

// imageEntrypoint is the entrypoint of the image temporalio/server.
const imageEntrypoint = "/etc/temporal/entrypoint.sh"

// checkMounts checks that the source of every mount exists, and that every absolute path that a service uses
// is mounted.
func checkMounts(f files, c compose, s service) (found []string) {
	var targets []string
	for _, volume := range s.Volumes {
		parts := strings.Split(volume, ":")
		targets = append(targets, parts[1])
		if _, named := c.Volumes[parts[0]]; named {
			continue
		}
		info, err := os.Stat(mountSource(parts[0]))
		switch {
		case err != nil:
			found = append(found, "no file "+parts[0])
		case strings.HasSuffix(parts[0], ".sh") && info.Mode()&0o111 == 0:
			found = append(found, parts[0]+" is not executable")
		case strings.HasSuffix(parts[0], ".sh") && !strings.HasPrefix(f[strings.TrimPrefix(parts[0], "./")], "#!/bin/sh\n"):
			found = append(found, parts[0]+" is not a shell script")
		}
	}
	for _, used := range slices.Concat(s.Entrypoint, s.Command, slices.Collect(maps.Values(s.Environment))) {
		isPath := strings.HasPrefix(used, "/") || strings.HasPrefix(used, "file://")
		if isPath && used != imageEntrypoint && !slices.Contains(targets, used) && !isMounted(s, used) {
			found = append(found, "nothing is mounted at "+used)
		}
	}
	return found
}

// checkDependencies checks that the condition of each depends_on entry can become true.
func checkDependencies(c compose, s service) (found []string) {
	if !slices.Contains([]string{"unless-stopped", "on-failure:5"}, s.Restart) {
		found = append(found, "restart: "+s.Restart)
	}
	for name, on := range s.DependsOn {
		other, exists := c.Services[name]
		switch {
		case !exists:
			found = append(found, "no service "+name)
		case on.Condition == "service_healthy" && len(other.Healthcheck.Test) == 0:
			found = append(found, name+" has no health check")
		case on.Condition == "service_completed_successfully" && !other.isOneShot():
			found = append(found, name+" does not exit")
		case on.Condition != "service_healthy" && on.Condition != "service_completed_successfully":
			found = append(found, name+": condition "+on.Condition)
		}
	}
	return found
}

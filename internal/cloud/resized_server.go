package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"berth/internal/safeurl"
)

// migration is the resize or the cold migration of a server. Until the migration is confirmed or reverted,
// the server has its new flavor and its new host, and the migration is the consumer of its allocations from
// the old host.
type migration struct {
	UUID   string `json:"uuid"`
	Server string `json:"instance_uuid"`
	Source string `json:"source_compute"`
	Type   string `json:"migration_type"`
	Status string `json:"status"`
}

// Statuses of a migration.
const (
	finished   = "finished"   // waits until it is confirmed or reverted
	confirming = "confirming" // Nova is about to delete its allocations
)

// unfinished are the statuses in which a server has its new flavor while the migration still has allocations,
// in the order in which a migration gets them, so that a migration whose status changes meanwhile is on one
// of the lists.
var unfinished = []string{"post-migrating", finished, "reverting", confirming}

// microversionOfUUIDs is Nova's first microversion whose list of migrations contains their UUIDs.
const microversionOfUUIDs = "2.59"

// deleteConsumers deletes the servers that have slots of a reservation without its flavor, and returns
// ErrServersRemain while such a server still has its slot. An unconfirmed resize, which Nova keeps for ever
// by default, makes such a server. A server whose resize is being confirmed is not deleted: Nova is about to
// release its slot. deleteConsumers ignores consumers that are neither a server nor an unfinished migration.
func (i instances) deleteConsumers(ctx context.Context, reservation uuid.UUID) error {
	if i.cloud.consumers == nil {
		return nil
	}
	consumers, err := i.cloud.consumers(ctx, reservation)
	if err != nil || len(consumers) == 0 {
		return err
	}
	resizes, err := i.unfinishedResizes(ctx)
	if err != nil {
		return err
	}
	// a resize may have been confirmed before its migration was read
	if consumers, err = i.cloud.consumers(ctx, reservation); err != nil {
		return err
	}
	var known []string
	for _, consumer := range consumers {
		is, err := i.deleteConsumer(ctx, consumer, resizes)
		if err != nil {
			return err
		}
		if is {
			known = append(known, consumer)
		}
	}
	if len(known) == 0 {
		return nil
	}
	left, err := i.cloud.consumers(ctx, reservation)
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(consumer string) bool { return !slices.Contains(known, consumer) })
	if len(left) > 0 {
		return fmt.Errorf("%w: %d servers have slots of the reservation without its flavor, such as the server or migration %s",
			ErrServersRemain, len(left), left[0])
	}
	return nil
}

// deleteConsumer requests the deletion of the server to which a consumer belongs. The result is false if the
// consumer is neither a server nor an unfinished migration of a server.
func (i instances) deleteConsumer(ctx context.Context, consumer string, resizes map[string]migration) (is bool, err error) {
	server := consumer
	if m, is := resizes[consumer]; is {
		if m.Status == confirming {
			return true, nil
		}
		server = m.Server
	}
	err = servers.ForceDelete(ctx, i.client, safeurl.Segment(server)).ExtractErr()
	if ignoreNotFound(err) != nil {
		return false, fmt.Errorf("delete server %s: %w", server, err)
	}
	return err == nil, nil
}

// unfinishedResizes returns the unfinished resizes and cold migrations of all servers by the UUID of the
// migration.
func (n nova) unfinishedResizes(ctx context.Context) (map[string]migration, error) {
	client := *n.client
	client.Microversion = microversionOfUUIDs
	resizes := map[string]migration{}
	for _, status := range unfinished {
		query := url.Values{"status": {status}}
		list := linkedList(&client, client.ServiceURL("os-migrations")+"?"+query.Encode(), "migrations")
		all, err := listAll(ctx, &client, list, extractLinked[migration])
		if err != nil {
			return nil, fmt.Errorf("list migrations: %w", err)
		}
		for _, m := range all {
			if m.Status == status && (m.Type == "resize" || m.Type == "migration") {
				resizes[m.UUID] = m
			}
		}
	}
	return resizes, nil
}

// confirmResizes confirms those of the resizes and cold migrations that are finished: of servers from hosts
// that a reservation gets or releases to other hosts. Otherwise Nova would keep the memory and the disk of
// such a server on its old host for ever, and its owner could revert the migration, which brings the server
// back to a host that is then reserved for another project. confirmResizes ignores refusals, and returns the
// first error of a request without an answer after it has sent all requests.
func (h hosts) confirmResizes(ctx context.Context, resizes map[string][]migration) (err error) {
	for _, m := range slices.Concat(slices.Collect(maps.Values(resizes))...) {
		if m.Status != finished {
			continue
		}
		failed := servers.ConfirmResize(ctx, h.client, safeurl.Segment(m.Server)).ExtractErr()
		var refused gophercloud.ErrUnexpectedResponseCode
		if failed != nil && !errors.As(failed, &refused) && err == nil {
			err = fmt.Errorf("confirm the resize of server %s: %w", m.Server, failed)
		}
	}
	return err
}

// finishResizes confirms the given resizes and cold migrations of servers from the given hosts to other
// hosts. finishResizes returns the hosts to which such a server can still come back, each with an error.
func (h hosts) finishResizes(
	ctx context.Context,
	from []string,
	resizes map[string][]migration,
) (map[string]error, error) {
	if len(resizes) == 0 {
		return nil, nil
	}
	_ = h.confirmResizes(ctx, resizes)
	// Nova has usually confirmed most resizes by now, and a request without an answer may have succeeded
	all, err := h.resizesFrom(ctx, from)
	if err != nil {
		return nil, err
	}
	left := map[string]error{}
	for host, resizes := range all {
		for _, m := range resizes {
			is, err := h.isResized(ctx, m.Server)
			if err == nil && is {
				err = fmt.Errorf("%w: server %s has a resize from host %s that is not finished",
					ErrServersRemain, m.Server, host)
			}
			if err != nil {
				left[host] = err
				break
			}
		}
	}
	return left, nil
}

// isResized reports whether a server that has an unfinished migration can come back to its old host. The
// status of a migration does not say so: the migration stays unfinished for ever after an operator has reset
// the state of its server, or after the server was deleted without it. Nova reverts a migration only of a
// server that has the status VERIFY_RESIZE. While Nova works on a server, the server has another one of these
// statuses or a state of a task.
func (n nova) isResized(ctx context.Context, server string) (bool, error) {
	s, err := servers.Get(ctx, n.client, safeurl.Segment(server)).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return n.hasServer(ctx, server)
	}
	if s, err = answered(s, err); err == nil && s.Status == "" {
		err = errNoObject
	}
	if err != nil {
		return false, fmt.Errorf("read server %s: %w", server, err)
	}
	isResize := slices.Contains([]string{"VERIFY_RESIZE", "RESIZE", "REVERT_RESIZE"}, s.Status)
	return isResize || s.TaskState != "", nil
}

// resizesFrom returns the unfinished resizes and cold migrations of servers from each of the hosts that has
// some.
func (n nova) resizesFrom(ctx context.Context, hosts []string) (map[string][]migration, error) {
	all, err := n.unfinishedResizes(ctx)
	from := map[string][]migration{}
	for _, m := range all {
		i := slices.IndexFunc(hosts, func(host string) bool { return strings.EqualFold(host, m.Source) })
		if i >= 0 {
			from[hosts[i]] = append(from[hosts[i]], m)
		}
	}
	return from, err
}

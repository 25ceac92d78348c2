package reconciler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"berth/internal/contract"
	"berth/internal/panics"
	"berth/internal/store/outbox"
)

const (
	pageSize = 1000 // executions that Temporal lists in one response
	// partitionRows is the number of rows above which the rows of a workflow type are compared in several
	// parts, so that the reconciler keeps only some of them in memory.
	partitionRows = 10_000
	// confirmDelay is the time between the detection of a difference and the check that the difference still
	// exists. The delay is needed because Temporal's visibility shows changes late, and because a workflow
	// ends some time after its row is deleted.
	confirmDelay = 2 * time.Second
	// confirmBatch is the number of differences that the reconciler confirms and repairs
	// together, and describeConcurrency is the number of concurrent calls that confirm them.
	confirmBatch        = 500
	describeConcurrency = 8
	// verifiedRows is the approximate number of executions that one comparison verifies, out of the
	// executions that visibility lists as open. If visibility lists more, each comparison verifies another
	// part of them.
	verifiedRows = 200
	// maxBacklog is the number of waiting notes above which the reconciler pauses before it enqueues more
	// notes.
	maxBacklog = 2000
	// maxNudged is the maximum number of workflows that one comparison nudges to write their search
	// attributes. A small number suffices: after many leases have started at one instant, their workflows
	// write the new status one after another without a nudge.
	maxNudged   = 200
	maxExamples = 5
)

// partition is a part of the rows and executions. The reconciler compares one partition after the other.
type partition struct {
	workflows []string // workflow types
	prefix    string   // prefix of the workflow IDs
}

// comparison compares all rows that must have a workflow with all open executions.
type comparison struct {
	*Reconciler
	number uint32 // number of this comparison
	shares uint32 // number of comparisons that together verify every listed execution once
	// last nudge of a workflow without a row or with outdated search attributes, by workflow ID
	nudgedAt map[string]time.Time
	result   outbox.Projection // result for the executions
	// number of workflows that this comparison has nudged to write their search attributes
	nudged int
	drift  outbox.Projection // result for the search attributes
	waited time.Duration     // time of this comparison in which it has only waited
}

func newComparison(r *Reconciler) *comparison {
	return &comparison{Reconciler: r, nudgedAt: map[string]time.Time{}}
}

// run performs one comparison and returns the pause before the next one.
func (c *comparison) run(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	c.number++
	c.waited = 0
	c.result, c.drift, c.nudged = outbox.Projection{
		Name: outbox.Executions,
	}, outbox.Projection{
		Name: outbox.SearchAttributes,
	}, 0
	c.objects.begin()
	partitions, err := c.partitions(ctx)
	if err != nil {
		return comparisonInterval, err
	}
	for _, p := range partitions {
		if err := c.compare(ctx, p); err != nil {
			return comparisonInterval, err
		}
	}
	c.objects.publish()
	if err := errors.Join(c.Store.SaveComparison(ctx, c.result), c.Store.SaveComparison(ctx, c.drift)); err != nil {
		return comparisonInterval, err
	}
	pause := comparisonInterval
	if c.result.Unattended+c.result.Orphans+c.drift.Different > 0 {
		pause = repeatedInterval
		slog.WarnContext(
			ctx,
			"Temporal differed from the rows",
			"rows",
			c.result.Compared,
			"unattended",
			c.result.Unattended,
			"orphans",
			c.result.Orphans,
			"attributes",
			c.drift.Different,
			"examples",
			append(c.result.Examples, c.drift.Examples...),
		)
	}
	return max(pause, comparisonShare*(time.Since(begin)-c.waited)), nil
}

// partitions divides the rows and executions, so that each part fits into memory.
func (c *comparison) partitions(ctx context.Context) ([]partition, error) {
	counts, err := c.Store.CountRows(ctx)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	c.shares = uint32(total/verifiedRows) + 1
	var together []string
	var parts []partition
	for _, w := range contract.EntityWorkflows {
		if prefix := contract.UUIDPrefix(w); prefix != "" && counts[w] > partitionRows {
			for _, digit := range "0123456789abcdef" {
				parts = append(parts, partition{[]string{w}, prefix + string(digit)})
			}
			continue
		}
		together = append(together, w)
	}
	return append(parts, partition{together, ""}), nil
}

// compare compares the rows of a partition with its open executions.
func (c *comparison) compare(ctx context.Context, p partition) error {
	rows, err := c.Store.Rows(ctx, p.workflows, p.prefix)
	if err != nil {
		return err
	}
	c.hideProjects(rows)
	c.objects.add(rows)
	c.result.Compared += int64(len(rows))
	c.drift.Compared += int64(len(rows))
	query := fmt.Sprintf(`WorkflowType IN ('%s') AND ExecutionStatus = 'Running'`,
		strings.Join(p.workflows, "', '"))
	if p.prefix != "" {
		query += fmt.Sprintf(` AND WorkflowId STARTS_WITH '%s'`, p.prefix)
	}
	for page := []byte(nil); ; {
		r, err := withCallTimeout(
			ctx,
			"list open workflows",
			func(ctx context.Context) (*workflowservice.ListWorkflowExecutionsResponse, error) {
				return c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
					Query:         query,
					PageSize:      pageSize,
					NextPageToken: page,
				})
			},
		)
		if err != nil {
			return err
		}
		if err := c.comparePage(ctx, rows, r.GetExecutions()); err != nil {
			return err
		}
		if page = r.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	var missing []string
	for id, row := range rows {
		if !row.HasNote {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return c.inBatches(ctx, missing, c.restartUnattended)
}

// hideProjects removes the projects from the attributes of the rows, if search attributes have no projects.
func (c *comparison) hideProjects(rows map[string]outbox.Row) {
	if !c.HideProjects {
		return
	}
	for id, row := range rows {
		row.Attributes.Project = ""
		rows[id] = row
	}
}

// comparePage compares one page of open executions with the rows, and removes the rows that have an
// execution.
func (c *comparison) comparePage(
	ctx context.Context,
	rows map[string]outbox.Row,
	page []*workflow.WorkflowExecutionInfo,
) error {
	var orphans, different, listed []string
	for _, e := range page {
		id := e.GetExecution().GetWorkflowId()
		row, ok := rows[id]
		if ok && !row.HasNote && c.isVerifiedNow(id) {
			listed = append(listed, id)
		}
		switch {
		case !ok:
			orphans = append(orphans, id)
		case !row.HasNote && differs(row.Attributes, e.GetSearchAttributes()):
			different = append(different, id)
		}
	}
	for _, e := range page { // an ID can occur twice while its workflow continues as new
		delete(rows, e.GetExecution().GetWorkflowId())
	}
	return errors.Join(
		c.inBatches(ctx, orphans, c.signalOrphans),
		c.inBatches(ctx, different, c.nudgeDifferent),
		c.verifyListed(ctx, listed),
	)
}

// isVerifiedNow says whether this comparison verifies a listed execution.
func (c *comparison) isVerifiedNow(id string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()%c.shares == c.number%c.shares
}

// verifyListed asks Temporal whether executions that visibility lists as open really are open, and restarts
// those that are not. Visibility can list an execution forever if the execution was deleted shortly after its
// start.
func (c *comparison) verifyListed(ctx context.Context, ids []string) error {
	open, err := c.describeOpen(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return open[id] != nil })
	return c.inBatches(ctx, ids, c.restartUnattended)
}

// inBatches waits for confirmDelay and then calls `repair` for each batch of workflow IDs.
func (c *comparison) inBatches(
	ctx context.Context,
	ids []string,
	repair func(context.Context, []string) error,
) error {
	if len(ids) == 0 {
		return nil
	}
	c.wait(ctx, confirmDelay)
	for batch := range slices.Chunk(ids, confirmBatch) {
		if err := repair(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// wait pauses the comparison. The pause does not count as work of the comparison.
func (c *comparison) wait(ctx context.Context, d time.Duration) {
	begin := time.Now()
	sleep(ctx, d)
	c.waited += time.Since(begin)
}

// restartUnattended restarts the workflows that are not open although their row exists and the outbox
// contains no note for the row.
func (c *comparison) restartUnattended(ctx context.Context, ids []string) error {
	rows, err := c.Store.RowsByWorkflowID(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		row, ok := rows[id]
		return !ok || row.HasNote
	})
	open, err := c.describeOpen(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return open[id] != nil })
	c.result.Unattended += int64(len(ids))
	addExamples(&c.result, ids)
	if err := c.awaitBacklog(ctx); err != nil {
		return err
	}
	return c.restart(ctx, "unattended", ids)
}

// signalOrphans nudges open workflows without a row, so that they look for their row and end.
func (c *comparison) signalOrphans(ctx context.Context, ids []string) error {
	rows, err := c.Store.RowsByWorkflowID(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { _, ok := rows[id]; return ok })
	open, err := c.describeOpen(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return open[id] == nil })
	c.result.Orphans += int64(len(ids))
	addExamples(&c.result, ids)
	for _, id := range c.notNudgedRecently(ids) {
		_, err := withCallTimeout(ctx, "signal "+id, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.Client.SignalWorkflow(ctx, id, "", contract.SignalChanged, nil)
		})
		if missing := new(serviceerror.NotFound); err != nil && !errors.As(err, &missing) {
			return err
		}
	}
	return nil
}

// nudgeDifferent nudges workflows whose search attributes differ from their row, so that they read their row
// and write the attributes.
func (c *comparison) nudgeDifferent(ctx context.Context, ids []string) error {
	rows, err := c.Store.RowsByWorkflowID(ctx, ids)
	if err != nil {
		return err
	}
	c.hideProjects(rows)
	open, err := c.describeOpen(ctx, ids)
	if err != nil {
		return err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool {
		row, ok := rows[id]
		return !ok || row.HasNote || open[id] == nil ||
			!differs(row.Attributes, open[id].GetSearchAttributes())
	})
	c.drift.Different += int64(len(ids))
	addExamples(&c.drift, ids)
	if err := c.awaitBacklog(ctx); err != nil {
		return err
	}
	due := c.notNudgedRecently(ids[:min(len(ids), maxNudged-c.nudged)])
	c.nudged += len(due)
	return c.restart(ctx, "attributes", due)
}

// nudgeInterval is the time after which a workflow that still differs from its row is nudged again.
const nudgeInterval = time.Minute

// notNudgedRecently returns the workflow IDs that were not nudged within nudgeInterval, and records that they
// are nudged now.
func (c *comparison) notNudgedRecently(ids []string) []string {
	now := time.Now()
	for id, at := range c.nudgedAt {
		if now.Sub(at) > nudgeInterval {
			delete(c.nudgedAt, id)
		}
	}
	var due []string
	for _, id := range ids {
		if _, nudged := c.nudgedAt[id]; !nudged {
			c.nudgedAt[id] = now
			due = append(due, id)
		}
	}
	return due
}

// awaitBacklog waits while many notes wait for their delivery, so that the notes of the reconciler do not
// delay the notes of clients much.
func (c *comparison) awaitBacklog(ctx context.Context) error {
	for ctx.Err() == nil {
		b, err := c.Store.Backlog(ctx)
		if err != nil || b.Notes < maxBacklog {
			return err
		}
		c.wait(ctx, time.Second)
	}
	return ctx.Err()
}

// describeOpen returns, by workflow ID, the open executions of the given workflows. Unlike Temporal's
// visibility, the result is never late.
func (c *comparison) describeOpen(
	ctx context.Context,
	ids []string,
) (map[string]*workflow.WorkflowExecutionInfo, error) {
	found := make([]*workflow.WorkflowExecutionInfo, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(describeConcurrency)
	for i, id := range ids {
		group.Go(func() (err error) {
			defer panics.Recover(ctx, "the description of a workflow", &err)
			d, err := withCallTimeout(
				ctx,
				"describe "+id,
				func(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
					return c.Client.DescribeWorkflowExecution(ctx, id, "")
				},
			)
			if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
				return nil
			}
			if info := d.GetWorkflowExecutionInfo(); info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				found[i] = info
			}
			return err
		})
	}
	err := group.Wait()
	open := map[string]*workflow.WorkflowExecutionInfo{}
	for i, id := range ids {
		if found[i] != nil {
			open[id] = found[i]
		}
	}
	return open, err
}

func addExamples(p *outbox.Projection, ids []string) {
	p.Examples = append(p.Examples, ids[:min(len(ids), maxExamples-len(p.Examples))]...)
}

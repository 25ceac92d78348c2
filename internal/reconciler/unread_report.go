package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"berth/internal/contract"
)

// unreadReport is an agent's report that Temporal has accepted, but that no workflow has applied to the
// port's row.
type unreadReport struct {
	port    string // workflow ID
	payload *common.Payloads
	readAt  time.Time
}

// unreadLimit is how long the reconciler tries to send an unread report to the new run of a workflow.
const unreadLimit = 2 * time.Minute

// collectUnread reads the reports that a run of a Port workflow had accepted and not applied to the row when
// a person ended the run.
func (s *endedSearch) collectUnread(ctx context.Context, id, run string) error {
	if !strings.HasPrefix(id, contract.UUIDPrefix(contract.Port)) {
		return nil
	}
	var events []*history.HistoryEvent
	for page := []byte(nil); ; {
		r, err := withCallTimeout(
			ctx,
			"read the history of "+id,
			func(ctx context.Context) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
				request := &workflowservice.GetWorkflowExecutionHistoryRequest{
					Namespace:     s.Namespace,
					Execution:     &common.WorkflowExecution{WorkflowId: id, RunId: run},
					NextPageToken: page,
				}
				return s.Client.WorkflowService().GetWorkflowExecutionHistory(ctx, request)
			},
		)
		if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
			return nil // the run was deleted meanwhile
		}
		if err != nil {
			return err
		}
		events = append(events, r.GetHistory().GetEvents()...)
		if page = r.GetNextPageToken(); len(page) == 0 {
			break
		}
	}
	for _, payload := range unreadReports(events) {
		s.unread = append(s.unread, unreadReport{id, payload, time.Now()})
	}
	return nil
}

// unreadReports returns the payloads of the reports that the activity ApplyPortReports has not applied, in
// the order of their arrival. Each call to the activity applies the reports that arrived before the workflow
// task that scheduled the call.
func unreadReports(events []*history.HistoryEvent) (unread []*common.Payloads) {
	applied := int64(0) // reports with lower event IDs are applied
	// event ID of the workflow task that scheduled an activity, by the event ID of the activity
	scheduled := map[int64]int64{}
	for _, e := range events {
		switch e.GetEventType() {
		case enums.EVENT_TYPE_MARKER_RECORDED:
			m := e.GetMarkerRecordedEventAttributes()
			if isApplied(m) {
				applied = max(applied, m.GetWorkflowTaskCompletedEventId())
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() ==
				applyPortReports {
				scheduled[e.GetEventId()] = a.GetWorkflowTaskCompletedEventId()
			}
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			applied = max(applied,
				scheduled[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()])
		}
	}
	for _, e := range events {
		if a := e.GetWorkflowExecutionSignaledEventAttributes(); a.GetSignalName() == contract.SignalProvisioningComplete &&
			e.GetEventId() > applied {
			unread = append(unread, a.GetInput())
		}
	}
	return unread
}

// applyPortReports is the registered name of the activity that applies reports.
const applyPortReports = "ApplyPortReports"

// isApplied reports whether the marker is the result of a local activity that applied reports.
func isApplied(m *history.MarkerRecordedEventAttributes) bool {
	if m.GetFailure() != nil {
		return false
	}
	for _, p := range m.GetDetails()["data"].GetPayloads() {
		if bytes.Contains(p.GetData(), []byte(`"`+applyPortReports+`"`)) {
			return true
		}
	}
	return false
}

// resendUnread sends the unread reports to the new runs of their workflows. If the new run of a workflow has
// not started yet, its reports stay in s.unread for the next call.
func (s *endedSearch) resendUnread(ctx context.Context) error {
	var left []unreadReport
	var failure error
	for _, u := range s.unread {
		_, err := withCallTimeout(
			ctx,
			"send a report again to "+u.port,
			func(ctx context.Context) (*workflowservice.SignalWorkflowExecutionResponse, error) {
				return s.Client.WorkflowService().
					SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
						Namespace:         s.Namespace,
						WorkflowExecution: &common.WorkflowExecution{WorkflowId: u.port},
						SignalName:        contract.SignalProvisioningComplete,
						Input:             u.payload,
						Identity:          "berth reconciler",
					})
			},
		)
		if err == nil {
			continue
		}
		if missing := new(serviceerror.NotFound); !errors.As(err, &missing) {
			failure = err
		}
		rows, rowErr := s.Store.RowsByWorkflowID(ctx, []string{u.port})
		switch _, exists := rows[u.port]; {
		case rowErr == nil && !exists: // the port is deleted
		case time.Since(u.readAt) < unreadLimit:
			left = append(left, u)
		default:
			failure = fmt.Errorf(
				"a report to %s is lost, because its workflow was ended and does not run again: %w",
				u.port,
				err,
			)
		}
	}
	s.unread = left
	return failure
}

package main

import (
	"fmt"
	"io"
	"time"

	"berth/bench/harness"
)

// section is the key of the report in the JSON file.
const section = "failover"

// report is the value of `section` in the JSON file. All times are seconds since the first request.
type report struct {
	Machine  harness.Machine  `json:"machine"`
	Settings reportedSettings `json:"settings"`
	Events   []event          `json:"events"`
	Sent     int              `json:"requests"`
	// writes that were answered with 2xx, and how many of them are not in the rows afterwards
	Acknowledged int `json:"acknowledged_writes"`
	Lost         int `json:"lost_writes"`
	// requests that were answered with 503, with another status than 2xx and 503, or not at all
	Refused int `json:"answers_503"`
	Failed  int `json:"other_failures"`
	// from the end of the primary to the first answer 503
	FirstRefusal float64 `json:"seconds_from_kill_to_first_503"`
	// from the promotion to the answer of the first write that was sent after the promotion
	FirstWrite float64 `json:"seconds_from_promotion_to_first_write"`
	// the longest time that a client waited for an answer
	Longest float64 `json:"longest_request_seconds"`
	// when the controller had all acknowledged networks
	Mirrored  float64    `json:"controller_complete_at_seconds"`
	Intervals []interval `json:"intervals"`
}

type reportedSettings struct {
	Clients  int     `json:"clients"`
	Rate     float64 `json:"requests_per_second"`
	Interval float64 `json:"interval_seconds"`
}

// event is a step of the failover that is complete.
type event struct {
	At   float64 `json:"at_seconds"`
	Name string  `json:"name"`
}

// The events of a failover.
const (
	killed   = "the primary is killed"
	promoted = "the standby is promoted"
	returned = "the killed server is the standby"
)

// interval counts the answers of an interval by the time at which the client got them.
type interval struct {
	At           float64 `json:"at_seconds"` // begin
	Acknowledged int     `json:"acknowledged"`
	Refused      int     `json:"answers_503"`
	Failed       int     `json:"other_failures"`
}

func newReport(s settings, m harness.Machine, l *load, events []event) report {
	r := report{
		Machine:  m,
		Settings: reportedSettings{s.stack.Clients, s.rate, s.interval.Seconds()},
		Events:   events,
		Sent:     len(l.answers),
	}
	for _, a := range l.answers {
		r.add(a)
	}
	return r
}

// add adds an answer.
func (r *report) add(a answer) {
	end := (a.sent + a.took).Seconds()
	index := int(end / r.Settings.Interval)
	for len(r.Intervals) <= index {
		r.Intervals = append(r.Intervals, interval{At: float64(len(r.Intervals)) * r.Settings.Interval})
	}
	in := &r.Intervals[index]
	r.Longest = max(r.Longest, a.took.Seconds())
	switch {
	case a.acknowledged():
		in.Acknowledged++
		if a.isWrite() {
			r.Acknowledged++
			setFirst(&r.FirstWrite, a.sent.Seconds(), end, r.timeOf(promoted))
		}
	case a.refused():
		in.Refused++
		r.Refused++
		setFirst(&r.FirstRefusal, end, end, r.timeOf(killed))
	default:
		in.Failed++
		r.Failed++
	}
}

// setFirst sets `first` to the time from an event to the end of a request that counts after the event, if it
// is the first one.
func setFirst(first *float64, counts, end, event float64) {
	if counts >= event && (*first == 0 || end-event < *first) {
		*first = end - event
	}
}

// timeOf returns the time of an event.
func (r *report) timeOf(name string) float64 {
	for _, e := range r.Events {
		if e.Name == name {
			return e.At
		}
	}
	return 0
}

func (r *report) print(w io.Writer) {
	r.Machine.PrintHead(w, fmt.Sprintf("%d clients with %g requests a second",
		r.Settings.Clients, r.Settings.Rate))
	for _, e := range r.Events {
		fmt.Fprintf(w, "  %6.1fs  %s\n", e.At, e.Name)
	}
	fmt.Fprintf(w, "first 503 %s after the end of the primary, first write %s after the promotion, longest request %s\n",
		seconds(r.FirstRefusal), seconds(r.FirstWrite), seconds(r.Longest))
	fmt.Fprintf(w, "%d requests: %d answers 503, %d other failures; of %d acknowledged writes, %d are lost; controller complete at %s\n",
		r.Sent, r.Refused, r.Failed, r.Acknowledged, r.Lost, seconds(r.Mirrored))
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

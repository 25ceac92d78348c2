package odltest

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// control serves the control API for tests in other processes:
//
//	GET    /_control/log?after=N   {"requests": [Request…]}
//	GET    /_control/objects       {"objects": [Record…], "violations": […]}
//	GET    /_control/faults        {"faults": [Fault…]}
//	POST   /_control/faults        a Fault, or a list of them
//	DELETE /_control/faults        removes all faults
//	DELETE /_control/objects       deletes all objects
//	POST   /_control/lose          {"share": 0.1, "seed": 7}: deletes a random share of the objects
//	POST   /_control/change        {"share": 0.1, "seed": 7}: renames a random share of the objects
//	POST   /_control/features      {"operational-port-status": ""}: replaces the features
//	POST   /_control/hosts         [{"host-id": …, "config": …}]: replaces the host configurations
//	POST   /_control/status        {"port": …, "status": "ACTIVE"}: sets the status of a port
//	POST   /_control/wire          {"on": true}: sets each port on its hosts to ACTIVE
//	DELETE /_control/streams       closes all streams
func (c *Controller) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /_control/log":
		after, err := strconv.Atoi("0" + r.URL.Query().Get("after"))
		if err != nil {
			writeReply(w, errorReply(http.StatusBadRequest, "after must be a number"))
			return
		}
		writeReply(w, reply{status: http.StatusOK, body: map[string]any{"requests": c.requestsAfter(after)}})
	case "GET /_control/objects":
		writeReply(w, reply{
			status: http.StatusOK,
			body: map[string]any{
				"objects":    c.Records(),
				"violations": append([]string{}, c.Violations()...),
			},
		})
	case "GET /_control/faults":
		writeReply(w, reply{status: http.StatusOK, body: map[string]any{"faults": c.Faults()}})
	case "POST /_control/faults":
		writeReply(w, c.addFaults(r))
	case "DELETE /_control/faults":
		c.ClearFaults()
		writeReply(w, reply{status: http.StatusNoContent})
	case "DELETE /_control/objects":
		if err := c.LoseAll(); err != nil {
			writeReply(w, errorReply(http.StatusInternalServerError, "%s", err))
			return
		}
		writeReply(w, reply{status: http.StatusNoContent})
	case "POST /_control/lose":
		writeReply(w, alterObjects(r, c.LoseShare))
	case "POST /_control/change":
		writeReply(w, alterObjects(r, c.ChangeShare))
	case "POST /_control/features":
		writeReply(w, decodeAnd(r, c.SetFeatures))
	case "POST /_control/hosts":
		writeReply(w, decodeAnd(r, func(hosts []HostConfig) { c.SetHostConfigs(hosts...) }))
	case "POST /_control/status":
		writeReply(w,
			decodeAnd(r, func(s struct{ Port, Status string }) { c.SetPortStatus(s.Port, s.Status) }))
	case "POST /_control/wire":
		writeReply(w, decodeAnd(r, func(s struct{ On bool }) { c.SetAutoWire(s.On) }))
	case "DELETE /_control/streams":
		c.CloseStreams(false)
		writeReply(w, reply{status: http.StatusNoContent})
	default:
		writeReply(w, errorReply(http.StatusNotFound, "unknown control path"))
	}
}

// decodeAnd decodes the request body and calls the function `do` with the decoded value.
func decodeAnd[T any](r *http.Request, do func(T)) reply {
	raw, err := readBody(r)
	var v T
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return errorReply(http.StatusBadRequest, "%s", err)
	}
	do(v)
	return reply{status: http.StatusNoContent}
}

func alterObjects(r *http.Request, alter func(float64, uint64) ([]Record, error)) reply {
	raw, err := readBody(r)
	if err != nil {
		return errorReply(http.StatusBadRequest, "%s", err)
	}
	var args struct {
		Share float64 `json:"share"`
		Seed  uint64  `json:"seed"`
	}
	if err := json.Unmarshal(raw, &args); err != nil || args.Share < 0 || args.Share > 1 {
		return errorReply(http.StatusBadRequest, "want {\"share\": 0 to 1, \"seed\": a number}")
	}
	records, err := alter(args.Share, args.Seed)
	if err != nil {
		return errorReply(http.StatusInternalServerError, "%s", err)
	}
	return reply{status: http.StatusOK, body: map[string]any{"objects": records}}
}

func (c *Controller) requestsAfter(after int) []Request {
	requests := []Request{}
	for _, s := range c.Requests() {
		if s.Number > after {
			requests = append(requests, s)
		}
	}
	return requests
}

func (c *Controller) addFaults(r *http.Request) reply {
	raw, err := readBody(r)
	if err != nil {
		return errorReply(http.StatusBadRequest, "%s", err)
	}
	var faults []Fault
	if json.Unmarshal(raw, &faults) != nil {
		var one Fault
		if err := json.Unmarshal(raw, &one); err != nil {
			return errorReply(http.StatusBadRequest, "invalid fault: %s", err)
		}
		faults = []Fault{one}
	}
	for _, f := range faults {
		if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
			return errorReply(http.StatusBadRequest,
				"invalid fault: status %d is not between 200 and 599", f.Status)
		}
		switch f.Break {
		case "", BreakReset, BreakHang, BreakCut:
		default:
			return errorReply(http.StatusBadRequest, "invalid fault: break %q is unknown", f.Break)
		}
	}
	c.InjectFaults(faults...)
	return reply{status: http.StatusNoContent}
}

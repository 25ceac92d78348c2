package odltest

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// control lets another process look and script:
//
//	GET    /_control/log?after=N   {"requests": [Seen…]}
//	GET    /_control/objects       {"objects": [Record…], "violations": […]}
//	GET    /_control/faults        {"faults": [Fault…]}
//	POST   /_control/faults        a Fault, or a list of them
//	DELETE /_control/faults        no more faults
//	DELETE /_control/objects       the controller loses its objects
//	POST   /_control/lose          {"share": 0.1, "seed": 7}: it loses a share of them without a word
//	POST   /_control/change        the same; it changes their names
//	POST   /_control/features      {"operational-port-status": ""}: what it can do
//	POST   /_control/hosts         [{"host-id": …, "host-type": …, "config": …}]: the hosts that it wires ports on
//	POST   /_control/status        {"port": …, "status": "ACTIVE"}: what became of the wiring of a port
//	POST   /_control/wire          {"on": true}: it wires the ports on its hosts by itself
//	DELETE /_control/streams       those who listen are cut off
func (c *Controller) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /_control/log":
		after, err := strconv.Atoi("0" + r.URL.Query().Get("after"))
		if err != nil {
			answer(w, refuse(http.StatusBadRequest, "after is not a number"))
			return
		}
		answer(w, reply{status: http.StatusOK, body: map[string]any{"requests": c.since(after)}})
	case "GET /_control/objects":
		answer(w, reply{status: http.StatusOK, body: map[string]any{"objects": c.Records(), "violations": append([]string{}, c.Violations()...)}})
	case "GET /_control/faults":
		answer(w, reply{status: http.StatusOK, body: map[string]any{"faults": c.Faults()}})
	case "POST /_control/faults":
		answer(w, c.script(r))
	case "DELETE /_control/faults":
		c.ClearFaults()
		answer(w, reply{status: http.StatusNoContent})
	case "DELETE /_control/objects":
		if err := c.LoseAll(); err != nil {
			answer(w, refuse(http.StatusInternalServerError, "%s", err))
			return
		}
		answer(w, reply{status: http.StatusNoContent})
	case "POST /_control/lose":
		answer(w, harmed(r, c.LoseShare))
	case "POST /_control/change":
		answer(w, harmed(r, c.ChangeShare))
	case "POST /_control/features":
		answer(w, said(r, c.SetFeatures))
	case "POST /_control/hosts":
		answer(w, said(r, func(hosts []HostConfig) { c.SetHostConfigs(hosts...) }))
	case "POST /_control/status":
		answer(w, said(r, func(s struct{ Port, Status string }) { c.SetPortStatus(s.Port, s.Status) }))
	case "POST /_control/wire":
		answer(w, said(r, func(s struct{ On bool }) { c.SetAutoWire(s.On) }))
	case "DELETE /_control/streams":
		c.CloseStreams(false)
		answer(w, reply{status: http.StatusNoContent})
	default:
		answer(w, refuse(http.StatusNotFound, "no such control"))
	}
}

// said lets do have the request's JSON.
func said[T any](r *http.Request, do func(T)) reply {
	raw, err := read(r)
	var v T
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	do(v)
	return reply{status: http.StatusNoContent}
}

func harmed(r *http.Request, harm func(float64, uint64) ([]Record, error)) reply {
	raw, err := read(r)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	var how struct {
		Share float64 `json:"share"`
		Seed  uint64  `json:"seed"`
	}
	if err := json.Unmarshal(raw, &how); err != nil || how.Share < 0 || how.Share > 1 {
		return refuse(http.StatusBadRequest, "want {\"share\": 0 to 1, \"seed\": a number}")
	}
	records, err := harm(how.Share, how.Seed)
	if err != nil {
		return refuse(http.StatusInternalServerError, "%s", err)
	}
	return reply{status: http.StatusOK, body: map[string]any{"objects": records}}
}

func (c *Controller) since(after int) []Request {
	requests := []Request{}
	for _, s := range c.Requests() {
		if s.Number > after {
			requests = append(requests, s)
		}
	}
	return requests
}

func (c *Controller) script(r *http.Request) reply {
	raw, err := read(r)
	if err != nil {
		return refuse(http.StatusBadRequest, "%s", err)
	}
	var faults []Fault
	if json.Unmarshal(raw, &faults) != nil {
		var one Fault
		if err := json.Unmarshal(raw, &one); err != nil {
			return refuse(http.StatusBadRequest, "not a fault: %s", err)
		}
		faults = []Fault{one}
	}
	for _, f := range faults {
		if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
			return refuse(http.StatusBadRequest, "status %d cannot be answered", f.Status)
		}
		switch f.Break {
		case "", BreakReset, BreakHang, BreakCut:
		default:
			return refuse(http.StatusBadRequest, "break %q is unknown", f.Break)
		}
	}
	c.InjectFaults(faults...)
	return reply{status: http.StatusNoContent}
}

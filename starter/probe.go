package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"berth/internal/contract"
)

// probe asks a neighbour for a page and tells the status of its answer.
func probe(ctx context.Context, url, user, password, ca string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, err
	}
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	transport, err := trusting(ca)
	if err != nil {
		return 0, err
	}
	defer transport.CloseIdleConnections()
	c := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// trusting believes the authorities of a PEM file beside the system's.
func trusting(ca string) (*http.Transport, error) {
	if ca == "" {
		return &http.Transport{}, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, nil
}

func checkTemporal(ctx context.Context, s *session) (string, error) {
	c, err := s.temporal(ctx)
	if err != nil {
		return "", err
	}
	if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return "", temporalTrouble(s.settings, "Temporal", err)
	}
	return s.address + " is healthy, namespace " + s.namespace, nil
}

// checkPollers looks for workers on every task queue, for workflows and for activities.
func checkPollers(ctx context.Context, s *session) (string, error) {
	c, err := s.temporal(ctx)
	if err != nil {
		return "", err
	}
	queues := []string{contract.PortQueue, contract.LeaseQueue, contract.JournalQueue}
	var missing []string
	for _, queue := range queues {
		for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
			q, err := c.DescribeTaskQueue(ctx, queue, kind)
			if err != nil {
				return "", temporalTrouble(s.settings, "task queue "+queue, err)
			}
			if len(q.Pollers) == 0 {
				missing = append(missing, queue+" ("+strings.ToLower(kind.String())+")")
			}
		}
	}
	if len(missing) > 0 {
		return "", fail(exitUnavailable, "Start a worker with the role temporal.", "nobody works on %s", strings.Join(missing, ", "))
	}
	return "on " + strings.Join(queues, ", "), nil
}

func checkAttributes(ctx context.Context, s *session) (string, error) {
	c, err := s.temporal(ctx)
	if err != nil {
		return "", err
	}
	known, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.namespace})
	if err != nil {
		return "", temporalTrouble(s.settings, "search attributes", err)
	}
	var names, wrong, commands []string
	for _, a := range contract.SearchAttributes {
		names = append(names, a.Name)
		if known.CustomAttributes[a.Name].String() != a.Type {
			wrong = append(wrong, a.Name)
			commands = append(commands, "--name "+a.Name+" --type "+a.Type)
		}
	}
	if len(wrong) > 0 {
		return "", fail(exitOther, "temporal operator search-attribute create --namespace "+s.namespace+" "+strings.Join(commands, " "),
			"missing or of another type: %s", strings.Join(wrong, ", "))
	}
	slices.Sort(names)
	return strings.Join(names, ", "), nil
}

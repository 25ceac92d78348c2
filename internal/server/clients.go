package server

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"berth/activities"
	"berth/internal/api/rpc"
	"berth/internal/cloud"
	"berth/internal/config"
	"berth/internal/feedback"
	"berth/internal/identity"
	"berth/internal/notify"
	"berth/internal/odl"
	"berth/internal/store"
)

// newClients creates the clients of the controller, Nova, Neutron, the enforcement service and the webhooks.
// If a service has no URL in the configuration, the result contains a client that sends nothing, or no client
// for this service.
func newClients(
	cfg config.Config,
	id identity.Authenticator,
	services *serviceMetrics,
) (activities.Options, error) {
	o := activities.Options{
		ODL:                 activities.NoController{},
		Nova:                activities.NoNova{},
		Webhook:             activities.NoWebhook{},
		ProvisioningWebhook: activities.NoWebhook{},
		Agents:              activities.NoAgents{},
	}
	type addClient func(*activities.Options, config.Config, identity.Authenticator, *serviceMetrics) error
	for _, add := range []addClient{addODL, addNova, addEnforcement, addWebhooks, addCloud} {
		if err := add(&o, cfg, id, services); err != nil {
			return o, err
		}
	}
	return o, nil
}

func addODL(
	o *activities.Options,
	cfg config.Config,
	_ identity.Authenticator,
	services *serviceMetrics,
) error {
	c := cfg.ODL
	if c.URL == "" {
		return nil
	}
	var ca []byte
	var err error
	if c.CAFile != "" {
		if ca, err = os.ReadFile(c.CAFile); err != nil {
			return fmt.Errorf("BERTH_ODL_CA_FILE: %w", err)
		}
	}
	client, err := odl.New(odl.Config{
		URL:         c.URL,
		User:        c.Username,
		Password:    c.Password,
		Timeout:     c.Timeout,
		CAPEM:       ca,
		Concurrency: c.Concurrency,
		Wrap:        services.measure("opendaylight"),
	})
	if err != nil {
		return fmt.Errorf("BERTH_ODL_URL: %w", err)
	}
	o.ODL = client
	return nil
}

// addNova adds the client of Nova's external events. The client sends BERTH_NOVA_TOKEN if this variable is
// set, otherwise a Keystone token of the service user, which the client renews before the token expires.
func addNova(
	o *activities.Options,
	cfg config.Config,
	id identity.Authenticator,
	services *serviceMetrics,
) error {
	c := cfg.Nova
	if c.URL == "" {
		return nil
	}
	how := notify.Config{URL: c.URL, Token: c.Token, Wrap: services.measure("nova")}
	if keystone, ok := id.(*identity.Keystone); ok && c.Token == "" {
		how.TokenSource = keystone.Fresh
	}
	nova, err := notify.NewNova(how)
	if err != nil {
		return fmt.Errorf("BERTH_NOVA_URL: %w", err)
	}
	o.Nova = notify.NewEventBatcher(nova.Send)
	return nil
}

func addEnforcement(
	o *activities.Options,
	cfg config.Config,
	_ identity.Authenticator,
	services *serviceMetrics,
) error {
	c := cfg.Lease.Enforcement
	if c.URL == "" {
		return nil
	}
	enforcement, err := notify.NewEnforcement(notify.EnforcementConfig{
		URL:      c.URL,
		Token:    c.Token,
		FailOpen: c.AllowOnFailure,
		AuthURL:  cfg.Service.AuthURL,
		Region:   cfg.Service.Region,
		Wrap:     services.measure("enforcement"),
	})
	if err != nil {
		return fmt.Errorf("BERTH_LEASE_ENFORCEMENT_URL: %w", err)
	}
	o.Enforcement = enforcement
	return nil
}

func addWebhooks(
	o *activities.Options,
	cfg config.Config,
	_ identity.Authenticator,
	services *serviceMetrics,
) error {
	for _, w := range []struct {
		setting string
		service string
		config  config.Webhook
		sender  *activities.NotificationSender
	}{
		{"BERTH_LEASE_WEBHOOK_URL", "lease_webhook", cfg.Lease.Webhook, &o.Webhook},
		{"BERTH_PROVISIONING_WEBHOOK_URL", "provisioning_webhook", cfg.Port.Webhook, &o.ProvisioningWebhook},
	} {
		if w.config.URL == "" {
			continue
		}
		webhook, err := notify.NewWebhook(
			notify.Config{URL: w.config.URL, Token: w.config.Token, Wrap: services.measure(w.service)},
		)
		if err != nil {
			return fmt.Errorf("%s: %w", w.setting, err)
		}
		*w.sender = webhook
	}
	return nil
}

// addCloud adds the client that provisions reservations at Nova and Neutron.
func addCloud(
	o *activities.Options,
	cfg config.Config,
	id identity.Authenticator,
	services *serviceMetrics,
) error {
	if cfg.Nova.URL == "" && cfg.Neutron.URL == "" {
		return nil
	}
	how := cloud.Config{
		Nova:    cfg.Nova.URL,
		Neutron: cfg.Neutron.URL,
		Token:   cfg.Nova.Token,
		Wrap: services.measureBy(func(r *http.Request) string {
			if neutron := cfg.Neutron.URL; neutron != "" && strings.HasPrefix(r.URL.String(), neutron) {
				return "neutron"
			}
			return "nova"
		}),
	}
	if keystone, ok := id.(*identity.Keystone); ok && cfg.Nova.Token == "" {
		how.RefreshToken = keystone.Fresh
	}
	c, err := cloud.New(how)
	if err != nil {
		return fmt.Errorf("BERTH_NOVA_URL, BERTH_NEUTRON_URL: %w", err)
	}
	o.Cloud = c
	if cfg.Nova.URL != "" {
		o.Hypervisors, o.MonitorHosts = c, cfg.Lease.Monitor
	}
	return nil
}

// newFeedbackListener returns the listener for the OpenDaylight controller's reports about the status of
// ports, about hosts and about the controller itself. newFeedbackListener returns nil if no controller is
// configured.
func newFeedbackListener(cfg config.ODL, client *odl.Client, s *store.Store) (*feedback.Listener, error) {
	if client == nil {
		return nil, nil
	}
	o := feedback.Options{
		Lock:            s.DB,
		Store:           s.Network,
		ODL:             client,
		PollInterval:    cfg.PollInterval,
		HostConfigsPath: cfg.HostConfigPath,
	}
	if cfg.Features != "" {
		var err error
		if o.Features, err = odl.ParseFeatures(cfg.Features); err != nil {
			return nil, fmt.Errorf("BERTH_ODL_FEATURES: %w", err)
		}
	}
	return feedback.New(o), nil
}

// newRPCServer returns the server that answers agents over RabbitMQ, or nil if the process does not have the
// role rpc.
func (a *App) newRPCServer() (*rpc.Server, error) {
	if !a.hasRole(config.RPC) {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	tls, err := rpc.TLSConfig(a.cfg.RabbitMQCAFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_RABBITMQ_CA_FILE: %w", err)
	}
	return rpc.NewServer(rpc.Options{
		Store:      a.store.Network,
		Agents:     a.store.Agents,
		Brokers:    a.cfg.RabbitMQ,
		Host:       host,
		Identities: a.cfg.RabbitMQIdentities,
		HostRate:   a.cfg.AgentRate.PerSecond,
		HostBurst:  a.cfg.AgentRate.Burst,
		TLS:        tls,
		Metrics:    a.registry,
		Observe:    a.observeCall,
	}), nil
}

// newPublisher returns the publisher of notifications to agents over RabbitMQ.
func (a *App) newPublisher() (*rpc.Publisher, error) {
	tls, err := rpc.TLSConfig(a.cfg.RabbitMQCAFile)
	if err != nil {
		return nil, fmt.Errorf("BERTH_RABBITMQ_CA_FILE: %w", err)
	}
	return rpc.NewPublisher(rpc.Options{
		Store:         a.store.Network,
		Agents:        a.store.Agents,
		Notifications: a.store.Notifications,
		Brokers:       a.cfg.RabbitMQ,
		Identities:    a.cfg.RabbitMQIdentities,
		TLS:           tls,
		Metrics:       a.registry,
	}), nil
}

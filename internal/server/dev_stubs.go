package server

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// stubsVariable is the environment variable of the address file with the URLs of the stubs, separated by
// blanks. The next development run in the same shell starts these stubs again, because it finds their URLs in
// stubsVariable.
const stubsVariable = "STUB_URLS"

// forgetStubs removes the URLs of stubs of an earlier development run from the settings, so that startStubs
// starts these stubs again.
func (d *devRun) forgetStubs(environ []string) {
	earlier, _ := environment(environ).LookupEnv(stubsVariable)
	for _, url := range []*string{&d.cfg.ODL.URL, &d.cfg.Nova.URL, &d.cfg.Neutron.URL} {
		if slices.Contains(strings.Fields(earlier), *url) {
			*url = ""
		}
	}
}

// startStubs starts a stub of each of OpenDaylight, Nova and Neutron whose URL the settings do not contain,
// and prints which of these services are stubs. The stub of OpenDaylight stores its objects in a file. The
// stubs of Nova and Neutron lose their objects when the development run ends.
func (d *devRun) startStubs() error {
	for _, s := range []struct {
		name, setting string
		url           *string
		start         func() error
	}{
		{"OpenDaylight", "BERTH_ODL_URL", &d.cfg.ODL.URL, d.startController},
		{"Nova", "BERTH_NOVA_URL", &d.cfg.Nova.URL, d.startNova},
		{"Neutron", "BERTH_NEUTRON_URL", &d.cfg.Neutron.URL, d.startNeutron},
	} {
		if *s.url != "" {
			d.printf("%s is the one of %s: %s", s.name, s.setting, *s.url)
			continue
		}
		if err := s.start(); err != nil {
			return fmt.Errorf("start the stub of %s: %w", s.name, err)
		}
		d.printf("the stub of %s is running; %s sets another %s", s.name, s.setting, s.name)
	}
	return nil
}

func (d *devRun) startController() error {
	controller, err := odltest.OpenFile(filepath.Join(d.cfg.Dev.Data, "odl"))
	if err != nil {
		return err
	}
	d.closers = append(d.closers, controller.Close)
	controller.User, controller.Password = d.cfg.ODL.Username, d.cfg.ODL.Password
	if d.odl, err = devstack.Serve(d.cfg.Dev.ODLPort, controller); err != nil {
		return err
	}
	d.cfg.ODL.URL, d.cfg.ODL.CAFile = d.odl.URL+odltest.BasePath, ""
	return nil
}

func (d *devRun) startNova() error {
	nova := &notifytest.Nova{Token: d.cfg.Nova.Token}
	nova.MirrorHypervisors(func(ctx context.Context) ([]string, error) {
		return devstack.RootProviders(ctx, d.cfg.DatabaseURL)
	})
	var err error
	if d.nova, err = devstack.Serve(0, nova); err != nil {
		return err
	}
	d.cfg.Nova.URL = d.nova.URL
	return nil
}

func (d *devRun) startNeutron() error {
	var err error
	if d.neutron, err = devstack.Serve(0, &notifytest.Neutron{}); err != nil {
		return err
	}
	d.cfg.Neutron.URL = d.neutron.URL
	return nil
}

// service returns the name of a service, which is a stub if berth has started a server for it.
func (d *devRun) service(stub *devstack.Server, name string) string {
	if stub == nil {
		return name
	}
	return "stub of " + name
}

// stubURLs returns the URLs of those services that are stubs.
func (d *devRun) stubURLs() (urls []string) {
	if d.odl != nil {
		urls = append(urls, d.cfg.ODL.URL)
	}
	if d.nova != nil {
		urls = append(urls, d.cfg.Nova.URL)
	}
	if d.neutron != nil {
		urls = append(urls, d.cfg.Neutron.URL)
	}
	return urls
}

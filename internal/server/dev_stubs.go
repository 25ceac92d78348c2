package server

import (
	"context"
	"fmt"
	"path/filepath"

	"berth/internal/devstack"
	"berth/internal/notify/notifytest"
	"berth/internal/odl/odltest"
)

// startStandIns starts stubs of OpenDaylight, Nova and Neutron. The stub of OpenDaylight stores its objects in a file. The stubs of Nova
// and Neutron lose their objects when the development run ends.
func (d *devRun) startStandIns() error {
	controller, err := odltest.OpenFile(filepath.Join(d.cfg.Dev.Data, "odl"))
	if err != nil {
		return err
	}
	d.closers = append(d.closers, controller.Close)
	controller.User, controller.Password = d.cfg.ODL.Username, d.cfg.ODL.Password
	if d.odl, err = devstack.Serve(d.cfg.Dev.ODLPort, controller); err != nil {
		return fmt.Errorf("start the stub of OpenDaylight: %w", err)
	}
	d.cfg.ODL.URL, d.cfg.ODL.CAFile = d.odl.URL+odltest.BasePath, ""
	nova := &notifytest.Nova{Token: d.cfg.Nova.Token}
	nova.MirrorHypervisors(func(ctx context.Context) ([]string, error) { return devstack.RootProviders(ctx, d.cfg.DatabaseURL) })
	if d.nova, err = devstack.Serve(0, nova); err != nil {
		return fmt.Errorf("start the stub of Nova: %w", err)
	}
	d.cfg.Nova.URL = d.nova.URL
	if d.neutron, err = devstack.Serve(0, &notifytest.Neutron{}); err != nil {
		return fmt.Errorf("start the stub of Neutron: %w", err)
	}
	d.cfg.Neutron.URL = d.neutron.URL
	return nil
}

package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// users are the names of the users of the functional tests. Each user has a project with the same name.
var users = []string{"demo", "alt_demo"}

// createProjects creates the projects and the users of the functional tests, and the file clouds.yaml with
// their passwords.
func (c *cloud) createProjects() error {
	var found struct{ Roles []struct{ ID string } }
	if err := c.call("GET", c.keystone+"/v3/roles?name=member", nil, &found); err != nil {
		return err
	}
	if len(found.Roles) != 1 {
		return fmt.Errorf("find the role member: got %d roles, want one", len(found.Roles))
	}
	for _, name := range users {
		var project struct{ Project struct{ ID string } }
		if err := c.call("POST", c.keystone+"/v3/projects", object{"project": object{"name": name}}, &project); err != nil {
			return err
		}
		var user struct{ User struct{ ID string } }
		if err := c.call("POST", c.keystone+"/v3/users", object{"user": object{"name": name, "password": password}}, &user); err != nil {
			return err
		}
		role := fmt.Sprintf("%s/v3/projects/%s/users/%s/roles/%s",
			c.keystone, project.Project.ID, user.User.ID, found.Roles[0].ID)
		if err := c.call("PUT", role, nil, nil); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(c.dir, "clouds.yaml"), []byte(c.cloudsYAML()), 0o600),
		os.WriteFile(filepath.Join(c.dir, "nova.conf"), []byte(c.novaConf()), 0o600),
		os.CopyFS(c.dir, libraries))
}

// libraries holds tests that call berth through the libraries of other projects.
//
//go:embed libraries
var libraries embed.FS

// novaConf returns Nova's configuration file.
func (c *cloud) novaConf() string {
	return fmt.Sprintf(
		"[DEFAULT]\nlog_file = %s/nova.log\n[oslo_concurrency]\nlock_path = %s/locks\n[neutron]\nauth_type = password\nauth_url = %s/v3\nusername = admin\npassword = %s\n"+
			"project_name = admin\nuser_domain_id = default\nproject_domain_id = default\nregion_name = RegionOne\nvalid_interfaces = public\n",
		c.dir,
		c.dir,
		c.keystone,
		password,
	)
}

// userEnv returns the environment variables of an ordinary user.
func (c *cloud) userEnv() []string {
	return []string{
		"OS_AUTH_TYPE=v3password",
		"OS_AUTH_URL=" + c.keystone + "/v3",
		"OS_USERNAME=demo",
		"OS_PASSWORD=" + password,
		"OS_PROJECT_NAME=demo",
		"OS_USER_DOMAIN_ID=default",
		"OS_PROJECT_DOMAIN_ID=default",
		"OS_REGION_NAME=RegionOne",
	}
}

// cloudsYAML returns the configuration of openstacksdk and of the openstack client. The functional tests
// expect clouds with these names.
func (c *cloud) cloudsYAML() string {
	text := "clouds:\n"
	for _, one := range []struct{ cloud, user, scope string }{
		{"devstack", "demo", "project_name: demo, project_domain_id: default"},
		{"devstack-alt", "alt_demo", "project_name: alt_demo, project_domain_id: default"},
		{"devstack-admin", "admin", "project_name: admin, project_domain_id: default"},
		{"devstack-system-admin", "admin", "system_scope: all"},
	} {
		text += fmt.Sprintf(
			"  %s:\n    region_name: RegionOne\n    has_compute: false\n    auth: {auth_url: %s/v3, username: %s, password: %s, user_domain_id: default, %s}\n",
			one.cloud, c.keystone, one.user, password, one.scope,
		)
	}
	return text
}

//go:embed openstack_server.py
var openstackServer string

//go:embed openstack_client.py
var openstackClient string

// startClient starts openstack_server.py, and writes the program openstack, which runs openstack_client.py,
// into the folder bin.
func (c *cloud) startClient() error {
	bin := filepath.Join(c.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	client := filepath.Join(c.dir, "openstack_client.py")
	if err := os.WriteFile(client, []byte(openstackClient), 0o600); err != nil {
		return err
	}
	socket := filepath.Join(c.dir, "openstack.socket")
	program := fmt.Sprintf("#!/bin/sh\nexec %s -I -S %s %s \"$@\"\n", c.pythons["suites"], client, socket)
	if err := os.WriteFile(filepath.Join(bin, "openstack"), []byte(program), 0o700); err != nil {
		return err
	}
	server := exec.Command(string(c.pythons["suites"]), "-W", "ignore", "-c", openstackServer)
	server.Dir = c.dir // the client reads clouds.yaml from the folder in which it runs
	if err := c.startServer("openstack", server); err != nil {
		return err
	}
	return c.await(func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
}

// tempestConf returns Tempest's configuration file. The file switches on the tests of the extensions that
// berth lists.
func (c *cloud) tempestConf() string {
	return strings.NewReplacer("KEYSTONE", c.keystone, "PASSWORD", password, "EXTERNAL", c.external, "DIR", c.dir,
		"EXTENSIONS", strings.Join(c.extensions, ",")).Replace(`
[DEFAULT]
log_file = DIR/tempest.log
[oslo_concurrency]
lock_path = DIR/locks
[auth]
admin_username = admin
admin_password = PASSWORD
admin_project_name = admin
admin_domain_name = Default
create_isolated_networks = false
tempest_roles = member
[identity]
uri_v3 = KEYSTONE/v3
region = RegionOne
v3_endpoint_type = public
[service_available]
neutron = true
blazar = true
nova = true
glance = false
cinder = false
swift = false
horizon = false
[network]
public_network_id = EXTERNAL
[network-feature-enabled]
api_extensions = EXTENSIONS
ipv6_subnet_attributes = true
[neutron_plugin_options]
available_type_drivers = flat,local,vlan,vxlan
provider_vlans = physnet1
agent_availability_zone = nova
`)
}

package interop

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/identity/keystonetest"
	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// keystoneCommands are commands of the openstack client that need Keystone: for the login, the service
// catalogue, or projects given by name. A line that begins with `old:` is only for clients whose command
// `quota show` has no option --network. A line that begins with `new:` is only for clients whose command
// `quota show` has this option.
var keystoneCommands = []struct {
	user, project string
	story         []commandCase
}{
	{"boss", "ops", []commandCase{
		{"old: quota show demo -f value -c networks -c ports -c secgroups", "100|500|10"},
		{"old: quota show -f value -c networks -c ports", "100|500"},
		{"new: quota show demo --network -f value", "has: ports 500"},
		{"new: quota show -f value", "has: networks 100"},
		{"quota set demo --networks 1 --ports 2 --secgroup-rules -1", ""},
		{"old: quota show demo -f value -c networks -c ports -c secgroup-rules", "1|2|-1"},
		{"old: quota show demo --default -f value -c networks -c ports", "100|500"},
		{"new: quota show demo --network -f value", "has: security_group_rules -1"},
		{"new: quota show demo --default -f value", "has: networks 100"},
		{"quota list --network -f value -c Project␣ID -c Networks -c Ports", "demo 1 2"},
		{"quota set nobody --networks 1", "error: nobody"},
		{"quota set demo --routers 7", "error: router"},
		{"network create blue --project demo -f value -c name -c project_id", "blue|demo"},
		{"network create shared --share -f value -c project_id -c shared", "ops|True"},
		{
			"subnet create sea --project demo --network blue --subnet-range 10.0.0.0/29 -f value -c project_id",
			"demo",
		},
		{"port create web --project demo --network blue -f value -c project_id -c status", "demo|DOWN"},
		{"network list --project demo -f value -c Name", "blue"},
		{"subnet list --project demo -f value -c Name", "sea"},
		{"port list --project demo -f value -c Name", "web"},
		{"security group create doors --project demo -f value -c project_id", "demo"},
		{"security group list --project demo --sort-column Name -f value -c Name", "default|doors"},
	}},
	{"alice", "demo", []commandCase{
		{"network list --sort-column Name -f value -c Name", "blue|shared"},
		{"network create green", "error: Quota exceeded for resources: ['network']"},
		{"port create own --network blue -f value -c project_id", "demo"},
		{"port create more --network blue", "error: Quota exceeded for resources: ['port']"},
		{"old: quota show -f value -c networks -c ports", "1|2"},
		{"new: quota show -f value", "has: ports 2"},
		{"quota show ops", "error: get_quota"},
		{"quota set demo --networks 5", "error: update_quota"},
		{"network agent list", ""},
		{"port set web --host cmp-1", "error: update_port:binding:host_id"},
		{"network set shared --name mine", "error: update_network"},
		{"network delete shared", "error: delete_network"},
	}},
	{"boss", "ops", []commandCase{
		{"old: quota list --network --detail --project demo -f value", "has: ports 2 0 2"},
		{"new: quota show demo --network --usage -f value", "has: ports 2 2 0"},
		{"new: quota set demo --ports 1", "error: must be greater than or equal to already used"},
		{"quota set demo --ports 1 --force", ""},
		{
			"old: quota set demo --ports 0 --check-limit",
			"error: must be greater than or equal to already used",
		},
		{"new: quota delete demo --network", ""},
		{"availability zone list --network -f value", ""},
		{"port delete web own", ""},
		{"network delete blue shared", ""},
	}},
}

func TestOpenStackClient_WithKeystone(t *testing.T) {
	t.Parallel()
	keystone := keystonetest.New(t)
	keystone.User("berth", "secret", "service", "service")
	keystone.User("boss", "secret", "ops", "admin", "member", "reader")
	keystone.User("alice", "secret", "demo", "member", "reader")
	s := servertest.NewDeployment(t, storetest.URL(t))
	s.Settings = append(
		s.Settings, "BERTH_AUTH=keystone", "OS_AUTH_URL="+keystone.URL+"/v3",
		"OS_USERNAME=berth", "OS_PASSWORD=secret", "OS_PROJECT_NAME=service",
	)
	keystone.Service("network", s.StartWorker("api").URL+"/networking")
	// `openstack quota` uses the compute, volume and network services. The openstack client sends a quota
	// request only if the service catalogue contains the compute, volume and network services.
	others := servertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"quota_set": {}}`))
	}))
	keystone.Service("compute", others+"/v2.1")
	keystone.Service("volumev3", others+"/v3")
	c := newClientWith(
		t,
		"OS_AUTH_TYPE=password",
		"OS_AUTH_URL="+keystone.URL+"/v3",
		"OS_PASSWORD=secret",
		"OS_USER_DOMAIN_NAME=Default",
		"OS_PROJECT_DOMAIN_NAME=Default",
		"OS_IDENTITY_API_VERSION=3",
	)

	for _, part := range keystoneCommands {
		c.session(
			"--os-username "+part.user+" --os-project-name "+part.project,
			func(run func(string) (int, string, string)) {
				_, help, _ := run("quota show --help")
				other := "new: "
				if strings.Contains(help, "--network") {
					other = "old: "
				}
				for _, said := range part.story {
					if strings.HasPrefix(said.line, other) {
						continue
					}
					said.line = said.line[strings.Index(said.line, ": ")+1:]
					if problem := said.differs(run(said.line)); problem != "" {
						t.Errorf("user %s runs the command openstack %s: %s", part.user, said.line, problem)
					}
				}
			},
		)
	}
}

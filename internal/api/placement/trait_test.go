package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestTraits_GenerationMovesOnlyOnChange(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	path := "/resource_providers/" + p + "/traits"
	body := func(g int, list string) string {
		return fmt.Sprintf(`{"traits":[%s],"resource_provider_generation":%d}`, list, g)
	}
	both := `"HW_CPU_X86_AVX","CUSTOM_A"`

	c.want(201, "", "1.6", "PUT", "/traits/CUSTOM_A", "")
	c.same(c.want(200, "", "1.6", "GET", path, ""), body(0, ""))
	c.same(
		c.want(200, "", "1.6", "PUT", path, body(0, `"CUSTOM_A","HW_CPU_X86_AVX","CUSTOM_A"`)),
		body(1, both),
	)
	c.same(c.want(200, "", "1.6", "PUT", path, body(1, both)), body(1, both))
	if a := c.want(409, "generation already changed", "1.39", "PUT", path, body(0, "")); a.code() != "placement.concurrent_update" {
		t.Error(a.code())
	}
	c.want(400, "No such trait CUSTOM_X, CUSTOM_Y", "1.39", "PUT", path,
		body(1, `"CUSTOM_Y","CUSTOM_X","CUSTOM_A"`))
	c.want(409,
		"The trait CUSTOM_A is in use by a resource provider.", "1.6", "DELETE", "/traits/CUSTOM_A", "")
	c.want(204, "", "1.6", "DELETE", path, "")
	c.want(204, "", "1.6", "DELETE", path, "")
	c.same(c.want(200, "", "1.6", "GET", path, ""), body(2, ""))
	c.want(204, "", "1.6", "DELETE", "/traits/CUSTOM_A", "")
	gone := "/resource_providers/" + uuid.NewString() + "/traits"
	c.want(400, "is a required property", "1.6", "PUT", gone, `{}`)
	c.want(404, "", "1.6", "PUT", gone, body(0, ""))
	c.want(404, "", "1.6", "GET", gone, "")
	c.want(404, "", "1.6", "DELETE", gone, "")
}

func TestTraits_ListCreateDelete(t *testing.T) {
	t.Parallel()
	c := serve(t)

	a := c.want(201, "", "1.6", "PUT", "/traits/CUSTOM_A", "")
	if at := a.header.Get("Location"); at != c.url+"/traits/CUSTOM_A" {
		t.Error(at)
	}
	c.want(204, "", "1.6", "PUT", "/traits/CUSTOM_A", "")
	c.want(204, "", "1.6", "GET", "/traits/CUSTOM_A", "")
	c.want(404, "No such trait(s): CUSTOM_B.", "1.6", "GET", "/traits/CUSTOM_B", "")
	c.want(404, "", "1.6", "DELETE", "/traits/CUSTOM_B", "")
	c.want(400, "Cannot delete standard trait COMPUTE_NODE.", "1.6", "DELETE", "/traits/COMPUTE_NODE", "")
	for _, bad := range []string{"CUSTOM_a", "COMPUTE_X", "CUSTOM_", "CUSTOM_" + strings.Repeat("A", 249)} {
		t.Run(bad, func(t *testing.T) {
			c := c.in(t)
			c.want(400, "The trait is invalid.", "1.6", "PUT", "/traits/"+bad, "")
		})
	}
	all := c.want(200, "MISC_SHARES_VIA_AGGREGATE", "1.6", "GET", "/traits", "").body["traits"].([]any)
	if len(all) != 378 || all[377] != "CUSTOM_A" {
		t.Errorf("list of traits: got %d, the last is %v; want 378 traits, the last of them CUSTOM_A",
			len(all), all[len(all)-1])
	}
	c.same(
		c.want(200, "", "1.6", "GET", "/traits?name=in:CUSTOM_A,COMPUTE_NODE,NO", ""),
		`{"traits":["COMPUTE_NODE","CUSTOM_A"]}`,
	)
	c.same(
		c.want(200, "", "1.6", "GET", "/traits?name=startswith:CUSTOM_&associated=False", ""),
		`{"traits":["CUSTOM_A"]}`,
	)
	c.same(c.want(200, "", "1.6", "GET", "/traits?associated=true", ""), `{"traits":[]}`)
	c.want(400, "Badly formatted name parameter.", "1.6", "GET", "/traits?name=x", "")
	c.want(400, "only accepts", "1.6", "GET", "/traits?associated=maybe", "")
	c.want(400, "'x' was unexpected", "1.6", "GET", "/traits?x=y", "")
}

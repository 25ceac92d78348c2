package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAggregates_FormatBeforeAndFrom119(t *testing.T) {
	t.Parallel()
	c := serve(t)
	p := c.provider("p")
	path := "/resource_providers/" + p + "/aggregates"
	a, b := uuid.NewString(), strings.ToUpper(uuid.NewString())

	c.same(
		c.want(200, "", "1.1", "PUT", path, fmt.Sprintf(`[%q,%q]`, b, a)),
		fmt.Sprintf(`{"aggregates":[%q,%q]}`, b, a),
	)
	c.want(200, b, "1.18", "GET", path, "")
	if g := c.generation(p); g != 0.0 {
		t.Errorf("write aggregates before microversion 1.19: the provider's generation is %v, want 0", g)
	}
	body := func(g int, list string) string {
		return fmt.Sprintf(`{"aggregates":[%s],"resource_provider_generation":%d}`, list, g)
	}
	c.same(c.want(200, "", "1.19", "PUT", path, body(0, `"`+a+`"`)), body(1, `"`+a+`"`))
	c.same(c.want(200, "", "1.19", "PUT", path, body(1, `"`+a+`"`)), body(2, `"`+a+`"`))
	conflict := c.want(
		409,
		"Resource provider's generation already changed. Please update the generation and try again.",
		"1.23", "PUT", path, body(1, ""),
	)
	if conflict.code() != "placement.concurrent_update" {
		t.Errorf(
			"write aggregates with an old generation: got code %v, want placement.concurrent_update",
			conflict.code(),
		)
	}
	c.same(c.want(200, "", "1.19", "GET", path, ""), body(2, `"`+a+`"`))
	c.want(400, "is not of type 'array'", "1.18", "PUT", path, body(2, ""))
	c.want(400, "is not of type 'object'", "1.19", "PUT", path, "[]")
	c.want(400, "has non-unique elements", "1.1", "PUT", path, fmt.Sprintf(`[%q,%q]`, a, a))
	c.want(400, "is too long", "1.1", "PUT", path, fmt.Sprintf(`[%q]`, a+strings.Repeat("-", 100000)))
	c.want(400, "'x' is not a 'uuid'", "1.1", "PUT", path, `["x"]`)
	c.want(404, "No resource provider", "1.19", "PUT",
		"/resource_providers/"+uuid.NewString()+"/aggregates", `{"bad":1}`)
	c.same(c.want(200, "", "1.39", "PUT", path, body(2, "")), body(3, ""))
}

package cloud_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"berth/internal/lease"
	"berth/internal/notify/notifytest"
)

// snapshotClaim returns a reservation of the host a that asks for snapshots, with a due before_end event.
func snapshotClaim() lease.CloudReservation {
	c := hostsClaim("a")
	c.Lease = uuid.MustParse("6c0c2d5c-4d0e-4b1c-8f55-1b0a8d5d7e01")
	c.BeforeEnd, c.BeforeEndAt = "snapshot", time.Date(2040, 1, 1, 11, 0, 0, 0, time.UTC)
	return c
}

// images returns the sorted names of the images in Nova.
func (s cloudTest) images() []string {
	return slices.Sorted(slices.Values(s.nova.ComputeState().Images))
}

func TestBeforeEnd_RepetitionMakesNoFurtherImages(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]notifytest.Fault{
		"failed":      {Status: 503},
		"lost answer": {Status: 503, Applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "first"})
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "second", ID: "broken"})
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "third"})
			fault.Request, fault.Times = "POST /servers/broken/action", 1
			for range 20 {
				s.nova.InjectFaults(fault)
				_ = s.BeforeEnd(t.Context(), snapshotClaim())
			}
			s.retry(func(ctx context.Context) error { return s.BeforeEnd(ctx, snapshotClaim()) })
			want := []string{"reserved_first", "reserved_second", "reserved_third"}
			if got := s.images(); !slices.Equal(got, want) {
				t.Errorf("images after 20 repetitions: got %d, %v; want %v", len(got), got, want)
			}
		})
	}
}

func TestBeforeEnd_ServerWithoutAnImageDelaysNoOther(t *testing.T) {
	t.Parallel()
	for status, final := range map[int]bool{404: true, 409: true, 400: false, 500: false} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "first", ID: "broken"})
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "second"})
			s.nova.InjectFaults(notifytest.Fault{Request: "POST /servers/broken/action", Status: status})
			if err := s.BeforeEnd(t.Context(), snapshotClaim()); (err == nil) != final {
				t.Errorf("Nova answers %d for a server: got error %v; want one only if another attempt can help",
					status, err)
			}
			if got := s.images(); !slices.Equal(got, []string{"reserved_second"}) {
				t.Errorf("images: got %v, want the one of the other server", got)
			}
		})
	}
}

func TestBeforeEnd_ServerWithALongNameGetsAnImage(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	s.nova.AddServer(notifytest.Server{Host: "a", Name: strings.Repeat("é", 255)})
	if err := s.BeforeEnd(t.Context(), snapshotClaim()); err != nil {
		t.Fatal(err)
	}
	want := []string{"reserved_" + strings.Repeat("é", 255-len("reserved_")-1) + "…"}
	if got := s.images(); !slices.Equal(got, want) {
		t.Errorf("images: got %v, want %v", got, want)
	}
}

// A Nova that ignores the filter of the list of images lists those of other reservations, too.
func TestBeforeEnd_ImagesOfOtherReservationsAreNotCounted(t *testing.T) {
	t.Parallel()
	s := newCareless(t)
	s.nova.AddServer(notifytest.Server{Host: "a", Name: "web"})
	other := snapshotClaim()
	other.ID = uuid.New()
	for _, c := range []lease.CloudReservation{other, snapshotClaim()} {
		if err := s.BeforeEnd(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if got := s.images(); len(got) != 2 {
		t.Errorf("images: got %v, want one for each reservation", got)
	}
}

// Every user can list the ID of a reservation of hosts, as the name of an availability zone, and can give an
// image any metadata. berth's token lists the private images of all projects.
func TestBeforeEnd_ImagesOfOtherProjectsPreventNoImage(t *testing.T) {
	t.Parallel()
	for name, padding := range map[string]int{"many": 0, "large": 7 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			c := snapshotClaim()
			for _, server := range []string{"first", "second"} {
				s.nova.AddServer(notifytest.Server{Host: "a", Name: server, ID: server})
				for range 5 {
					s.nova.AddImage("foreign", map[string]string{
						"berth_reservation": c.ID.String(),
						"berth_server":      server,
						"berth_before_end":  c.BeforeEndAt.Format(time.RFC3339),
						"padding":           strings.Repeat("x", padding),
					})
				}
			}
			err := s.BeforeEnd(t.Context(), c)
			got := slices.DeleteFunc(s.images(), func(name string) bool { return name == "foreign" })
			if want := []string{"reserved_first", "reserved_second"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("images with foreign images of the reservation: got %v, error %v; want %v", got, err, want)
			}
		})
	}
}

func TestBeforeEnd_UnreadableListDelaysNoOtherServer(t *testing.T) {
	t.Parallel()
	for request, want := range map[string][]string{
		"GET /servers/detail": {"reserved_third"},
		"GET /images/detail":  {"reserved_second", "reserved_third"},
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			s := newCloudTest(t)
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "first"})
			s.nova.AddServer(notifytest.Server{Host: "a", Name: "second"})
			s.nova.AddServer(notifytest.Server{Host: "b", Name: "third"})
			c := snapshotClaim()
			c.ComputeHosts = append(c.ComputeHosts, lease.ReservedHost{Service: "b", Slots: 1})
			s.nova.InjectFaults(notifytest.Fault{Request: request, Status: 400, Times: 1})
			err := s.BeforeEnd(t.Context(), c)
			if got := s.images(); err == nil || !slices.Equal(got, want) {
				t.Errorf("images after the failure of the first %s: got %v, error %v; want %v and an error",
					request, got, err, want)
			}
		})
	}
}

// A user can move the before_end event again and again, and each time it runs again. The images are in the
// project of berth's user, whose storage they would fill, also those of other servers each time.
func TestBeforeEnd_LaterDatesMakeALimitedNumberOfImages(t *testing.T) {
	t.Parallel()
	s := newCloudTest(t)
	c := snapshotClaim()
	for i := range 50 {
		s.nova.AddServer(notifytest.Server{Host: "a", Name: fmt.Sprint("web-", i), ID: fmt.Sprint("web-", i)})
		c.BeforeEndAt = c.BeforeEndAt.Add(time.Minute)
		c.BeforeEndRuns++
		if err := s.BeforeEnd(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := len(s.images()), 1+2+3+4+5; got != want {
		t.Errorf("images after 50 dates, with one more server at each: got %d, want %d of the first five dates", got, want)
	}
}

package osapi

import (
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// maxBodies is how many bytes of bodies all requests of the process hold at a time. What is made of a body can be
// twenty times its size.
const maxBodies = 32 << 20

var bodies = semaphore.NewWeighted(maxBodies)

// errNoRoom means that other requests' bodies take all the room that there is.
var errNoRoom = errors.New("no room for another body")

// guest is a body that takes room as it is read, and keeps it until the request is answered: a client that sends
// slowly takes no more than it has sent.
type guest struct {
	io.ReadCloser
	room *semaphore.Weighted
	held int64
}

func (g *guest) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	if n > 0 && !g.room.TryAcquire(int64(n)) {
		return 0, errNoRoom
	}
	g.held += int64(n)
	return n, err
}

// leave gives the room back.
func (g *guest) leave() { g.room.Release(g.held) }

// admit bounds a request's body, and all of them together. The function that it returns ends the stay.
func admit(w http.ResponseWriter, r *http.Request, limit int64) (leave func()) {
	g := &guest{ReadCloser: http.MaxBytesReader(w, r.Body, limit), room: bodies}
	r.Body = g
	return g.leave
}

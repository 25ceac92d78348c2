package odl

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
)

// maxCookies is the maximum size of the cookies that a client keeps, in bytes.
const maxCookies = 64 << 10

// cookieJar keeps the cookies of the controller's sessions; without cookies the controller opens a session
// for each request. If the controller has set more cookies than a client keeps, cookieJar forgets the older
// ones, and the controller opens new sessions.
type cookieJar struct {
	mu   sync.Mutex
	jar  *cookiejar.Jar
	size int // bytes of all cookies that the jar got
}

func newCookieJar() (*cookieJar, error) {
	jar, err := cookiejar.New(nil)
	return &cookieJar{jar: jar}, err
}

// SetCookies implements http.CookieJar.
func (j *cookieJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	size := 0
	for _, c := range cookies {
		size += len(c.Raw)
	}
	if size > maxCookies {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size += size; j.size > maxCookies {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return
		}
		j.jar, j.size = jar, size
	}
	j.jar.SetCookies(u, cookies)
}

// Cookies implements http.CookieJar.
func (j *cookieJar) Cookies(u *url.URL) []*http.Cookie {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.jar.Cookies(u)
}

package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/dnstest"
)

func rememberScene(t *testing.T) (*dnstest.World, *dnstest.Resolver, Endpoint) {
	t.Helper()
	w := dnstest.New(t)
	w.AddZone("example.com", w.AddServer("ns1.example.com"))
	w.Add("example.com", "www.example.com A 192.0.2.1")
	r := w.AddResolver()
	e, err := ParseEndpoint(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	return w, r, e
}

// Many who want to know make one question, and each gets an answer of its own.
func TestRememberAsksOnce(t *testing.T) {
	_, r, e := rememberScene(t)
	r.SetDelay(20 * time.Millisecond)
	ctx := Remember(t.Context())
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			m := NewQuestion("www.Example.com", dns.TypeA, true)
			got, err := Exchange(ctx, e, m)
			if err != nil || got.Id != m.Id || len(got.Answer) != 1 {
				t.Errorf("%v, %v", got, err)
				return
			}
			got.Answer[0].Header().Name = "changed." // must reach nobody else
		})
	}
	wg.Wait()
	got, err := Exchange(Remember(ctx), e, NewQuestion("www.example.com", dns.TypeA, true))
	if err != nil || got.Answer[0].Header().Name != "www.example.com." {
		t.Errorf("%v, %v", got, err)
	}
	if n := len(r.Queries()); n != 1 {
		t.Errorf("%d questions", n)
	}
	other := NewQuestion("www.example.com", dns.TypeA, true)
	other.CheckingDisabled = true
	if _, err := Exchange(ctx, e, other); err != nil || len(r.Queries()) != 2 {
		t.Errorf("with CD, which is another question: %v, %d questions", err, len(r.Queries()))
	}
	// Another memory knows nothing.
	if _, err := Exchange(Remember(t.Context()), e, other); err != nil || len(r.Queries()) != 3 {
		t.Errorf("%v, %d questions", err, len(r.Queries()))
	}
}

// Who goes leaves the question on its way, and the next one gets its answer.
func TestRememberOutlivesWhoAsked(t *testing.T) {
	_, r, e := rememberScene(t)
	r.SetDelay(200 * time.Millisecond)
	ctx := Remember(t.Context())
	first, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := Exchange(first, e, NewQuestion("www.example.com", dns.TypeA, true)); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
	if _, err := Exchange(ctx, e, NewQuestion("www.example.com", dns.TypeA, true)); err != nil {
		t.Error(err)
	}
	if n := len(r.Queries()); n != 1 {
		t.Errorf("%d questions", n)
	}
}

// A dead server costs a few time-outs, however much there is to ask; a slow one is not taken for dead, however
// long the line.
func TestRememberTheDead(t *testing.T) {
	_, r, e := rememberScene(t)
	r.SetDead(true)
	ctx := Remember(t.Context())
	ask := func(ctx context.Context, limit time.Duration, i int) error {
		_, err := ExchangeWithin(ctx, limit, e, NewQuestion(fmt.Sprintf("n%d.example.com", i), dns.TypeA, true))
		return err
	}
	for i := range 40 {
		if err := ask(ctx, 100*time.Millisecond, i); !errors.Is(err, ErrTimeout) {
			t.Fatalf("error %v", err)
		}
	}
	names := map[string]bool{}
	for _, q := range r.Queries() {
		names[q.Name] = true
	}
	if len(names) > silent {
		t.Errorf("%d questions", len(names))
	}

	r.Mend()
	r.SetDelay(500 * time.Millisecond)
	ctx = Remember(t.Context())
	var wg sync.WaitGroup
	for i := range 5 * atOnce { // more than are answered within the limit
		wg.Go(func() {
			if err := ask(ctx, 2*time.Second, i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// As many questions as may be are on their way to a server, and never more.
func TestRememberBoundsQuestions(t *testing.T) {
	var (
		mu            sync.Mutex
		running, most int
		full          = make(chan struct{})
		release       = make(chan struct{})
	)
	e := serveHTTPS(t, HTTPS, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		if running == atOnce {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		mu.Unlock()
		<-release
		a := new(dns.Msg)
		a.SetReply(unpack(t, r))
		mu.Lock()
		running--
		mu.Unlock()
		send(w, a)
	})
	ctx := Remember(t.Context())
	var wg sync.WaitGroup
	for i := range 3 * atOnce {
		wg.Go(func() {
			if _, err := Exchange(ctx, e, NewQuestion(fmt.Sprintf("n%d.example.com", i), dns.TypeA, true)); err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case <-full:
	case <-time.After(Timeout):
		t.Errorf("fewer than %d questions at once", atOnce)
	}
	time.Sleep(200 * time.Millisecond) // for those that would come although they must not
	close(release)
	wg.Wait()
	if most > atOnce {
		t.Errorf("%d questions at once, want at most %d", most, atOnce)
	}
}

// A refusal is remembered as an answer is, and so is that nobody listens.
func TestRememberFailures(t *testing.T) {
	_, r, e := rememberScene(t)
	r.SetRcode(dns.RcodeServerFailure)
	ctx := Remember(t.Context())
	for range 3 {
		m, err := Exchange(ctx, e, NewQuestion("www.example.com", dns.TypeA, true))
		if err != nil || m.Rcode != dns.RcodeServerFailure {
			t.Errorf("%v, %v", m, err)
		}
	}
	r.Mend()
	if _, err := (Recursive{Endpoints: []Endpoint{e}}).Ask(ctx, "www.example.com", dns.TypeA); err == nil {
		t.Error("the refusal is forgotten")
	}
	if n := len(r.Queries()); n != 1 {
		t.Errorf("%d questions", n)
	}

	fails := 0
	https := serveHTTPS(t, HTTPS, func(w http.ResponseWriter, _ *http.Request) {
		fails++
		http.Error(w, "busy", http.StatusServiceUnavailable)
	})
	for range 3 {
		_, err := Exchange(ctx, https, NewQuestion("www.example.com", dns.TypeA, true))
		if want, ok := errors.AsType[*Error](err); !ok || want.Name != "www.example.com" || want.Server != https.String() {
			t.Errorf("error %v", err)
		}
	}
	if fails != 1 {
		t.Errorf("%d questions over HTTPS", fails)
	}
}

// The end of the memory ends what is on its way and what waits for its turn.
func TestRememberEnds(t *testing.T) {
	asked := make(chan struct{}, 2*atOnce)
	gone := make(chan struct{}, 2*atOnce)
	e := serveHTTPS(t, HTTPS, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body) // from here on the server watches the connection
		asked <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	remembering := Remember(ctx)
	var wg sync.WaitGroup
	for i := range 2 * atOnce {
		wg.Go(func() {
			_, err := Exchange(remembering, e, NewQuestion(fmt.Sprintf("n%d.example.com", i), dns.TypeA, true))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		})
	}
	for range atOnce {
		<-asked
	}
	cancel()
	wg.Wait()
	for range atOnce {
		<-gone
	}
	select {
	case <-asked:
		t.Error("a question is asked after the end")
	default:
	}
}

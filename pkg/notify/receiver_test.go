package notify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const token = "correct horse \"battery\" – stäple"

func message() Message {
	return Message{
		AppID: "app-1", Challenge: "tls-alpn-01", Domain: "svc.example.com", InstanceID: "instance <1> & more",
		Records: []Record{
			{Name: "svc.example.com", Type: "CNAME", Value: "gateway.example.net", Note: "leads visitors here – \U0001f512"},
			{Exact: true, Name: "svc.example.com", Type: "CAA", Value: `0 issue "letsencrypt.org;validationmethods=dns-01"`},
		},
		Time: time.Unix(1_700_000_000, 999_999_999),
	}
}

// verdict is what the receiver found about one request.
type verdict struct {
	OK          bool
	Why         string
	Payload     map[string]any
	Attestation map[string]any
}

// receiver is testdata/receiver.py at work.
type receiver struct {
	url      string
	verdicts *bufio.Scanner
}

func newReceiver(t *testing.T, token string) *receiver {
	t.Helper()
	cmd := exec.Command("python3", "testdata/receiver.py") // ends with its stdin
	cmd.Env = append(cmd.Environ(), "RECEIVER_TOKEN="+token, "PYTHONUTF8=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &receiver{verdicts: bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		stdin.Close()
		rest, _ := io.ReadAll(stdout)
		if err := cmd.Wait(); err != nil || len(rest) > 0 {
			t.Errorf("the receiver ended with %v and said %q, %s", err, rest, &stderr)
		}
	})
	r.verdicts.Buffer(nil, 1<<20)
	if !r.verdicts.Scan() {
		t.Fatalf("the receiver does not start: %s", &stderr)
	}
	r.url = "http://127.0.0.1:" + r.verdicts.Text() + "/hook?key=value"
	return r
}

func (r *receiver) verdict(t *testing.T) verdict {
	t.Helper()
	var v verdict
	if !r.verdicts.Scan() {
		t.Fatal("the receiver is gone")
	}
	if err := json.Unmarshal(r.verdicts.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func newWebhook(t *testing.T, cfg Config) *Webhook {
	t.Helper()
	if cfg.Token == "" {
		cfg.Token = token
	}
	if cfg.Agent.Dir == "" {
		cfg.Agent.Dir = t.TempDir()
	}
	if cfg.RetryWait == 0 {
		cfg.RetryWait = time.Millisecond
	}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestReceiver(t *testing.T) {
	r := newReceiver(t, token)
	receipt, err := newWebhook(t, Config{URL: r.url}).Send(t.Context(), message())
	v := r.verdict(t)
	if err != nil || receipt != (Receipt{}) || !v.OK {
		t.Fatalf("Send = %+v, %v; the receiver says %+v", receipt, err, v)
	}
	if v.Attestation != nil {
		t.Errorf("attestation %v without an agent", v.Attestation)
	}
	got, err := json.Marshal(v.Payload)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"app_id":"app-1","challenge":"tls-alpn-01","domain":"svc.example.com","instance_id":"instance \u003c1\u003e \u0026 more","records":[` +
		`{"exact":false,"name":"svc.example.com","note":"leads visitors here – ` + "\U0001f512" + `","type":"CNAME","value":"gateway.example.net"},` +
		`{"exact":true,"name":"svc.example.com","note":"","type":"CAA","value":"0 issue \"letsencrypt.org;validationmethods=dns-01\""}],` +
		`"timestamp":1700000000,"version":1}`
	if string(got) != want {
		t.Errorf("the receiver read\n%s, want\n%s", got, want)
	}
}

// A receiver that checks with another token must be able to tell.
func TestReceiverWithAnotherToken(t *testing.T) {
	r := newReceiver(t, token+" ")
	_, err := newWebhook(t, Config{URL: r.url}).Send(t.Context(), message())
	v := r.verdict(t)
	if err == nil || v.OK || !strings.Contains(v.Why, "HMAC") {
		t.Errorf("Send = %v; the receiver says %+v", err, v)
	}
}

func TestReceiverSeesAttestation(t *testing.T) {
	r := newReceiver(t, token)
	agent := newAgent(t, "dstack.sock", `{"quote":"00ff<&>","event_log":"[]","report_data":"1234"}`)
	receipt, err := newWebhook(t, Config{URL: r.url, Agent: Agent{Dir: agent.dir}}).Send(t.Context(), message())
	v := r.verdict(t) // it compares report_data
	if err != nil || !receipt.Attested || receipt.Warning != nil || !v.OK {
		t.Fatalf("Send = %+v, %v; the receiver says %+v", receipt, err, v)
	}
	if v.Attestation["quote"] != "00ff<&>" || v.Attestation["event_log"] != "[]" {
		t.Errorf("attestation %v", v.Attestation)
	}
	report, _ := v.Attestation["report_data"].(string)
	if want := "/GetQuote?report_data=" + report + strings.Repeat("0", 64); agent.asked() != want {
		t.Errorf("the agent was asked %q, want %q", agent.asked(), want)
	}
}

// randomText mixes what JSON encoders treat differently.
func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(12) {
		switch rng.IntN(6) {
		case 0:
			b.WriteRune(rune(rng.IntN(0x20)))
		case 1:
			b.WriteString([]string{`\`, `"`, "/", "<", ">", "&", "'", "\x7f", "\u2028", "\u2029", "\ufeff", "\ufffd", "\uffff", "\U00010000", "\U0010ffff"}[rng.IntN(15)])
		case 2:
			b.WriteByte(byte(0x80 + rng.IntN(0x80))) // half of a character, or nonsense
		case 3:
			b.WriteRune(rune(rng.IntN(0x110000))) // a surrogate becomes U+FFFD
		default:
			b.WriteRune(rune(0x20 + rng.IntN(0x80)))
		}
	}
	return b.String()
}

// What Python makes of the same values is the same text. Octets that are not UTF-8 reach Python as what Go
// makes of them, character by character.
func TestPayloadIsPythons(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	valid := func(s string) string { return string([]rune(s)) }
	var input bytes.Buffer
	var want []string
	for i := range 2000 {
		m := Message{
			AppID: randomText(rng), Challenge: randomText(rng), Domain: randomText(rng), InstanceID: randomText(rng),
			Time: time.Unix(rng.Int64N(1<<40)-1<<39, 0),
		}
		records := []map[string]any{}
		for range i % 3 {
			r := Record{Exact: rng.IntN(2) == 0, Name: randomText(rng), Note: randomText(rng), Type: randomText(rng), Value: randomText(rng)}
			m.Records = append(m.Records, r)
			records = append(records, map[string]any{
				"value": valid(r.Value), "type": valid(r.Type), "note": valid(r.Note), "name": valid(r.Name), "exact": r.Exact,
			})
		}
		err := json.NewEncoder(&input).Encode(map[string]any{
			"version": 1, "timestamp": m.Time.Unix(), "records": records, "instance_id": valid(m.InstanceID),
			"domain": valid(m.Domain), "challenge": valid(m.Challenge), "app_id": valid(m.AppID),
		})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, m.Payload())
	}
	cmd := exec.CommandContext(t.Context(), "python3", "testdata/receiver.py", "payloads")
	cmd.Stdin = &input
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d payloads, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("seed %d: Payload is\n%s, but Python's is\n%s", seed, want[i], got[i])
		}
	}
}

// Any text comes back as itself, but for octets that are not UTF-8.
func FuzzPayload(f *testing.F) {
	f.Add("svc.example.com", "a note", int64(0))
	f.Add("\u00fc\x7f\x00\"\\", "<\U0001f512\xff\xed\xa0\x80>", int64(-1))
	f.Fuzz(func(t *testing.T, domain, note string, seconds int64) {
		payload := Message{Domain: domain, Records: []Record{{Note: note}}, Time: time.Unix(seconds, 0)}.Payload()
		if i := strings.IndexFunc(payload, func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
			t.Errorf("octet %#x in %q", payload[i], payload)
		}
		var got struct {
			Domain    string
			Records   []struct{ Note string }
			Timestamp json.Number
		}
		if err := json.Unmarshal([]byte(payload), &got); err != nil {
			t.Fatalf("%v: %s", err, payload)
		}
		if got.Domain != string([]rune(domain)) || got.Records[0].Note != string([]rune(note)) {
			t.Errorf("%q, %q became %q", domain, note, payload)
		}
		if got.Timestamp.String() != fmt.Sprint(time.Unix(seconds, 0).Unix()) {
			t.Errorf("the timestamp of %d is %s", seconds, got.Timestamp)
		}
	})
}

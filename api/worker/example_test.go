package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
)

// A worker that sends mails, and stops after the first.
func Example() {
	server := httptest.NewServer(oneJob(`{"to": "ada@example.com"}`))
	defer server.Close()

	c, err := client.New(server.URL, client.Config{})
	if err != nil {
		panic(err)
	}
	w, err := worker.New(c.Tenant("t_default").Namespace("default"), worker.Config{Concurrency: 20})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	w.Handle("emails", func(_ context.Context, j *worker.Job) error {
		defer stop()
		var mail struct{ To string }
		if err := j.Decode(&mail); err != nil {
			return err
		}
		fmt.Println("sent to", mail.To)
		return j.Return(map[string]bool{"sent": true})
	})
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	// Output:
	// sent to ada@example.com
	// acknowledged with {"sent":true}
}

// oneJob is a server with one job.
func oneJob(payload string) http.Handler {
	jobs := `{"id": "1", "queue": "emails", "lease_epoch": 1, "payload": ` + payload + `}`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Acks []struct{ Result json.RawMessage }
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		switch _, verb, _ := strings.Cut(r.URL.Path, "jobs:"); {
		case verb == "ack":
			fmt.Printf("acknowledged with %s\n", in.Acks[0].Result)
			_, _ = io.WriteString(w, `{"jobs": [{"id": "1", "ok": true, "state": "completed"}]}`)
		case jobs != "":
			_, _ = io.WriteString(w, `{"jobs": [`+jobs+`]}`)
			jobs = ""
		default:
			<-r.Context().Done()
		}
	})
}

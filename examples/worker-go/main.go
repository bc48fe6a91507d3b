// Worker-go is an example that sends the letters of the queue "letters" page by page. It
// continues from the page at which an earlier attempt stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/worker"
)

// letter is the payload of a job: {"to": "ada@example.com", "pages": 3}.
type letter struct {
	To    string `json:"to"`
	Pages int64  `json:"pages"`
}

// send is the handler of a job. A job is executed at least once, so a handler must allow for
// being called again after its work was done: here, a page that was sent before the process
// was killed is sent twice if its checkpoint was not stored.
//
// Its error decides what follows: Fatal ends the job as dead, RetryAfter retries it after the
// given time, and any other error after the backoff of the job.
func send(ctx context.Context, j *worker.Job) error {
	l := letter{Pages: 1}
	if err := j.Decode(&l); err != nil {
		return err
	}
	if !strings.Contains(l.To, "@") {
		return worker.Fatal(fmt.Errorf("%s is no address", l.To))
	}
	if strings.HasSuffix(l.To, "@busy.example") && j.Attempt == 1 {
		return worker.RetryAfter(errors.New("the server is busy"), 200*time.Millisecond)
	}
	page, err := begin(j)
	if err != nil {
		return err
	}
	for ; page < l.Pages; page++ {
		j.Progress(page, l.Pages, fmt.Sprintf("page %d", page+1))
		select {
		case <-time.After(50 * time.Millisecond): // stands for the work
		case <-ctx.Done():
			log.Printf("job %s: %v", j.ID, context.Cause(ctx))
			return ctx.Err()
		}
		if err := j.Keep(page + 1); err != nil {
			return err
		}
	}
	return j.Return(map[string]string{"sent": l.To})
}

// begin returns the page at which to start or continue: 0, or the value that an earlier attempt
// passed to Keep last.
func begin(j *worker.Job) (page int64, err error) {
	if len(j.Checkpoint) == 0 {
		return 0, nil
	}
	if _, err := fmt.Sscan(string(j.Checkpoint), &page); err != nil {
		return 0, worker.Fatal(fmt.Errorf("the checkpoint: %w", err))
	}
	return page, nil
}

// run works until SIGTERM or SIGINT. Run then fetches no more jobs, finishes those that have
// started, and releases the others without counting their attempt.
func run() error {
	url := flag.String("url", "http://127.0.0.1:8080", "URL of the server")
	tenant := flag.String("tenant", "t_default", "tenant of the queue")
	namespace := flag.String("namespace", "default", "namespace of the queue")
	concurrency := flag.Int("concurrency", 10, "maximum number of letters sent concurrently")
	lease := flag.Float64("lease", 30, "lease of a job, in seconds")
	flag.Parse()
	c, err := client.New(*url, client.Config{Key: os.Getenv("SOUS_KEY")})
	if err != nil {
		return err
	}
	w, err := worker.New(c.Tenant(*tenant).Namespace(*namespace), worker.Config{
		Concurrency: *concurrency, Lease: time.Duration(*lease * float64(time.Second)), OnError: func(err error) { log.Print(err) },
	})
	if err != nil {
		return err
	}
	w.Handle("letters", send)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return w.Run(ctx)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

package webhooks

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage/webhooks"
)

const (
	// contentType is that of a CloudEvent in structured mode, so that libraries for CloudEvents decode
	// the body.
	contentType = "application/cloudevents+json"
	// actor is the actor of the event of a webhook that is disabled.
	actor = "sous/webhooks"
	// maxDelay bounds the time between two attempts, also the one that a receiver asks for.
	maxDelay = time.Hour
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 4 << 10
)

// attempt makes an attempt of a delivery and records it. It returns when the next attempt is due, in
// milliseconds since 1970, 0 if the delivery ended. An attempt that ctx ends is not recorded: it is
// repeated.
func (r *run) attempt(ctx context.Context, h *hook, keys []string, m webhooks.Member) (nextMS int64) {
	later := r.d.store.NowMS() + trouble.Milliseconds()
	d, raw, found, err := r.d.hooks.Pending(ctx, r.tenant, h.ID, m)
	if err != nil {
		r.warn(ctx, h, err)
		return later
	}
	if !found {
		return 0
	}
	r.measureLag(&d)
	began := time.Now()
	a, retryAfter := r.send(ctx, h, keys, &d)
	if ctx.Err() != nil {
		return later
	}
	a.DurationMS, a.AtMS = time.Since(began).Milliseconds(), r.d.store.NowMS()
	r.decide(h, &d, &a, retryAfter)
	gone, err := r.record(ctx, h, &d, raw, &a)
	if err != nil {
		r.warn(ctx, h, err)
		return later
	}
	r.d.m.deliveries.WithLabelValues(a.Result).Inc()
	r.d.m.seconds.Observe(time.Since(began).Seconds())
	if gone != "" {
		r.disable(ctx, h, gone)
	}
	return a.NextAtMS
}

// warn logs a failure of the store.
func (r *run) warn(ctx context.Context, h *hook, err error) {
	if ctx.Err() == nil {
		r.d.cfg.Logger.Warn("an attempt to deliver an event was not recorded; it is repeated",
			zap.String("tenant", r.tenant), zap.String("webhook", h.Name), zap.Error(err))
	}
}

// measureLag counts the time from an event to its first attempt.
func (r *run) measureLag(d *webhooks.Delivery) {
	if d.Attempts > 0 || d.Event.Type == event.WebhookTest {
		return
	}
	if at, err := time.Parse(time.RFC3339, d.Event.Time); err == nil {
		r.d.m.lag.Observe(max(0, r.d.store.Now().Sub(at).Seconds()))
	}
}

// send sends the event. The result has its status and its error; retryAfter is the time that the
// receiver asks for, 0 without one.
func (r *run) send(ctx context.Context, h *hook, keys []string, d *webhooks.Delivery) (a webhook.Delivery, retryAfter time.Duration) {
	a = webhook.Delivery{Event: d.Event, Attempt: d.Attempts + 1}
	ctx, cancel := context.WithTimeout(ctx, r.d.cfg.Timeout)
	defer cancel()
	req, err := r.request(ctx, h, keys, &d.Event)
	if err != nil {
		a.Error = err.Error()
		return a, 0
	}
	resp, err := r.d.cfg.Sender.Do(r.tenant, req)
	if err != nil {
		a.Error = r.d.cfg.Sender.Reason(ctx, err)
		return a, 0
	}
	defer func() { _ = resp.Body.Close() }() // the rest of it is not read
	a.Status = resp.StatusCode
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // the status has arrived, and decides
	if resp.StatusCode/100 == 2 {
		return a, 0
	}
	a.Error = resp.Status
	if text := strings.TrimSpace(strings.ToValidUTF8(string(body), "�")); text != "" {
		a.Error += ": " + text
	}
	a.Error = shorten(a.Error, webhook.MaxErrorLength)
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		retryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return a, retryAfter
}

// shorten cuts text to at most n bytes of whole characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// parseRetryAfter parses a Retry-After header in seconds or as a date. It returns 0 without one.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return max(0, time.Duration(seconds)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// request returns the signed request of an event. Its body is the same in each attempt.
func (r *run) request(ctx context.Context, h *hook, keys []string, e *event.Event) (*http.Request, error) {
	body, err := api.EncodeJSON(e)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	seconds := r.d.store.Now().Unix()
	signature, err := webhook.Sign(keys, e.ID, seconds, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", r.d.cfg.UserAgent)
	req.Header.Set(webhook.HeaderID, e.ID)
	req.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(seconds, 10))
	req.Header.Set(webhook.HeaderSignature, signature)
	return req, nil
}

// decide sets the result of an attempt, and when the next one is due.
func (r *run) decide(h *hook, d *webhooks.Delivery, a *webhook.Delivery, retryAfter time.Duration) {
	switch {
	case a.Status/100 == 2:
		a.Result = webhook.Delivered
	case a.Status == http.StatusGone, d.Once, d.Attempts >= h.RetryLimit:
		a.Result = webhook.Failed
	default:
		delay := r.d.cfg.BaseDelay << min(d.Attempts, 30)
		if delay <= 0 || delay > maxDelay {
			delay = maxDelay
		}
		delay += rand.N(delay/5 + 1)
		a.Result, a.NextAtMS = webhook.Retrying, a.AtMS+min(max(delay, retryAfter), maxDelay).Milliseconds()
	}
}

// record records an attempt. gone is why the webhook is to be disabled, "" if it is not. Attempts of
// one webhook are recorded one after the other, so that a failure does not hide a later success.
func (r *run) record(ctx context.Context, h *hook, d *webhooks.Delivery, raw string, a *webhook.Delivery) (gone string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := h.failingSince
	switch {
	case a.Result == webhook.Delivered:
		since = 0
	case d.Event.Type == event.WebhookTest: // it does not count
	case since == 0:
		since = a.AtMS
	}
	if err := r.d.hooks.Settle(ctx, r.tenant, h.ID, d, raw, a, since); err != nil {
		return "", err
	}
	h.failingSince = since
	switch {
	case h.disabled:
	case a.Status == http.StatusGone:
		h.disabled = true
		return "the receiver answered 410 Gone", nil
	case since > 0 && a.AtMS-since >= webhook.DisableAfterMS:
		h.disabled = true
		return "no delivery succeeded for " + strconv.Itoa(webhook.DisableAfterMS/(24*60*60*1000)) + " days; the last error: " + a.Error, nil
	}
	return "", nil
}

// disable disables the webhook, and appends an event to the tenant's log. After a failure, the next
// attempt that fails disables it.
func (r *run) disable(ctx context.Context, h *hook, why string) {
	err := r.d.log.Record(ctx, r.tenant, event.Change{
		Type: event.WebhookDisabled, Of: event.KindWebhooks, ID: h.Name, AtMS: r.d.store.NowMS(), Actor: actor, Data: event.Data{Reason: event.Shorten(why)},
	})
	if err == nil {
		_, err = r.d.hooks.Update(ctx, r.tenant, h.Name, &h.Revision, func(c *webhook.Config) error { c.Enabled = false; return nil })
	}
	if err != nil {
		h.mu.Lock()
		h.disabled = false
		h.mu.Unlock()
		r.d.cfg.Logger.Warn("a webhook was not disabled; the next failure disables it", zap.String("tenant", r.tenant), zap.String("webhook", h.Name), zap.Error(err))
		return
	}
	r.d.cfg.Logger.Info("disabled a webhook", zap.String("tenant", r.tenant), zap.String("webhook", h.Name), zap.String("reason", why))
}

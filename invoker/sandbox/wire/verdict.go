package wire

// Verdict is the head of a Verdict frame: a decision of a handler about a job. It is sent when
// the handler makes it, so that it holds also if the child is killed later. One of Acked,
// Retried and NoRetry is set; of the first two, an activation sends at most one for each message.
type Verdict struct {
	// Message is the position of the message in its batch, from 0.
	Message int `json:"message"`
	// Acked: the job is complete, whatever the activation does afterwards.
	Acked bool `json:"acked,omitempty"`
	// Retried: the attempt has failed, whatever the activation does afterwards. DelayMS is the
	// time until the next one, in milliseconds; -1 stands for the job's backoff.
	// Reason is the handler's, "" for none.
	Retried bool   `json:"retried,omitempty"`
	DelayMS int64  `json:"delay_ms,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// NoRetry: if the attempt fails, it is the last one.
	NoRetry bool `json:"no_retry,omitempty"`
}

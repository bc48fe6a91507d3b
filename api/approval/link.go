package approval

// Limits of links.
const (
	MaxLinks = 1000 // of a tenant, that have not ended
	// DefaultLinkMS is how long a link lives unless its maker says otherwise.
	DefaultLinkMS = 24 * 3600 * 1000
)

// NewVoteLink asks for a link by which somebody without a key votes once.
type NewVoteLink struct {
	For         string `json:"for" minLength:"1" maxLength:"128" doc:"for whom it is, such as an address: the vote names it"`
	ExpiresInMS int64  `json:"expires_in_ms,omitempty" minimum:"0" maximum:"2592000000" doc:"86400000, a day, unless set"`
}

// VoteLink is a link by which the vote of the key that made it is cast once.
type VoteLink struct {
	ID          string `json:"id"`
	JobID       string `json:"job_id"`
	For         string `json:"for"`
	CreatedBy   string `json:"created_by" doc:"the key whose vote it casts"`
	CreatedAtMS int64  `json:"created_at_ms"`
	UntilMS     int64  `json:"until_ms" doc:"when it ends"`
	Path        string `json:"path,omitempty" doc:"to be opened below the address of the server; only the answer of its creation has it"`
}

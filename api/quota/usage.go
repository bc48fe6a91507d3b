package quota

// TenantUsage is the use of a tenant's quotas.
type TenantUsage struct {
	Tenant string          `json:"tenant"`
	Quotas []Used          `json:"quotas" nullable:"false" doc:"each quota with its limit and its use"`
	Days   []UsageDay      `json:"days" nullable:"false" doc:"what the functions have used, by day in UTC, oldest first"`
	ByName []FunctionUsage `json:"functions,omitempty" doc:"the same for each function and day, with by=function"`
}

// Used is the use of one quota. Fraction is 0 without a limit. The use of a rate is that of
// its current period on all replicas, a few seconds old.
type Used struct {
	Name     Name    `json:"name"`
	Used     int64   `json:"used"`
	Limit    int64   `json:"limit" doc:"-1 for none"`
	Fraction float64 `json:"fraction"`
}

// UsageDay holds the use of a tenant's functions on a day.
type UsageDay struct {
	Day         string  `json:"day" doc:"the day in UTC, such as 2026-11-25"`
	Calls       int64   `json:"calls"`
	Errors      int64   `json:"errors" doc:"calls that failed or timed out"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	GBSeconds   float64 `json:"gb_seconds" doc:"the memory limit of each call, in units of 1,000,000,000 bytes, times its duration"`
	WallSeconds float64 `json:"wall_seconds"`
	EgressBytes int64   `json:"egress_bytes"`
}

// FunctionUsage holds the use of one function on a day.
type FunctionUsage struct {
	Namespace string `json:"namespace"`
	Function  string `json:"function"`
	UsageDay
}

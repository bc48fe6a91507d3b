package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/quotas"
)

// registerQuotas adds the limits of tenants to flags.
func registerQuotas(flags *pflag.FlagSet) {
	flags.StringSlice("tenant-limits", nil, "limits of each tenant for which none are set by PUT T/limits, as NAME=VALUE, comma-separated, such as kv_bytes=2GiB,calls_per_second=500; -1 is none")
}

// tenantLimits reads the setting tenant-limits. Limits that it does not name are 0.
func (s *settings) tenantLimits() (limits quota.TenantLimits, err error) {
	for _, entry := range s.TenantLimits {
		name, text, ok := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		n, err := parseAmount(strings.TrimSpace(text))
		if !ok || err != nil {
			return limits, fmt.Errorf("tenant-limits %q: want NAME=NUMBER, and KiB, MiB or GiB after a number of bytes", entry)
		}
		if !limits.Set(name, n) {
			return limits, fmt.Errorf("tenant-limits %q: the limits are %s", entry, strings.Join(quota.TenantLimitNames(), ", "))
		}
	}
	if err := limits.Validate(); err != nil {
		return limits, fmt.Errorf("tenant-limits: %w", err)
	}
	return limits, nil
}

// parseAmount reads a number, or a size such as 2GiB.
func parseAmount(text string) (int64, error) {
	unit := int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if digits, found := strings.CutSuffix(text, suffix); found {
			text, unit = digits, size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n > quota.MaxTenantLimit/unit {
		err = strconv.ErrRange
	}
	return n * unit, err
}

// openQuotas makes the store keep the quotas of its tenants. The shares of rates are leased until
// life ends.
func (p *platform) openQuotas(ctx, life context.Context, s settings, store *storage.Store) error {
	defaults, err := s.tenantLimits()
	if err != nil {
		return err
	}
	p.quotas, err = quotas.New(ctx, store, quotas.Config{Defaults: defaults, Logger: p.logger.Named("quotas"), Metrics: p.metrics})
	if err != nil {
		return err
	}
	store.LimitBy(p.quotas)
	p.loops.Go(func() { p.quotas.Run(life) })
	return nil
}

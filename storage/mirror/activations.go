package mirror

import (
	"bytes"

	"github.com/codesous/sous/api"
)

// storedActivation is the row of an activation before a write.
type storedActivation struct {
	row int64
	doc []byte
}

// activations writes the rows of activations, and removes those of activations that are gone.
func (w *write) activations(all []Activation, force bool) error {
	all = last(all, func(a *Activation) [2]string { return [2]string{a.Tenant, a.ID} }, activationRow)
	tenants, of := byTenant(all, func(a *Activation) string { return a.Tenant })
	stored := make([]*storedActivation, len(all))
	for _, tenant := range tenants {
		if err := w.findActivations(tenant, all, of[tenant], stored); err != nil {
			return err
		}
	}
	for i := range all {
		if err := w.activation(&all[i], stored[i], force); err != nil {
			return err
		}
	}
	return nil
}

func activationRow(a *Activation) int64 {
	if a.View == nil {
		return 0
	}
	return RowOf(a.View.StartMS, a.ID)
}

// findActivations sets stored[i] to the row of all[i] for each of at, which are of one tenant.
func (w *write) findActivations(tenant string, all []Activation, at []int, stored []*storedActivation) error {
	ids, of := make([]string, len(at)), make(map[string]int, len(at))
	for k, i := range at {
		ids[k], of[all[i].ID] = all[i].ID, i
	}
	list, err := api.EncodeJSON(ids)
	if err != nil {
		return err
	}
	rows, err := w.s.findActivations.QueryContext(w.ctx, tenant, string(list))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	for rows.Next() {
		s, id := &storedActivation{}, ""
		if err := rows.Scan(&id, &s.row, &s.doc); err != nil {
			return err
		}
		stored[of[id]] = s
	}
	return rows.Err()
}

// activation writes one activation.
func (w *write) activation(a *Activation, s *storedActivation, force bool) error {
	if s == nil && a.View == nil {
		return nil
	}
	if s != nil && a.View != nil && !force && bytes.Equal(s.doc, a.Doc) {
		w.counts.Unchanged++
		return nil
	}
	if s != nil {
		if err := w.exec(w.s.deleteActivationWords, s.row); err != nil {
			return err
		}
	}
	if a.View == nil {
		w.counts.Removed++
		w.rows.activations--
		return w.exec(w.s.deleteActivation, s.row)
	}
	w.counts.Written++
	var row int64
	var err error
	if s == nil {
		w.rows.activations++
		row, err = w.insert(w.s.insertActivation, activationValues(RowOf(a.View.StartMS, a.ID), a))
	} else {
		row, err = s.row, w.exec(w.s.updateActivation, activationValues(s.row, a)...)
	}
	if err != nil {
		return err
	}
	v, failure := a.View, ""
	if v.Error != nil {
		failure = v.Error.Message
	}
	return w.exec(w.s.insertActivationWords, row, TenantWord(a.Tenant), a.ID, v.Function, shortText(failure), jsonText(v.Result))
}

// activationValues returns the values of the columns of an activation.
func activationValues(row int64, a *Activation) []any {
	v := a.View
	var errorType, message any
	if v.Error != nil {
		errorType, message = null(string(v.Error.Type)), v.Error.Message
	}
	return []any{
		row, a.Tenant, a.ID, v.Namespace, v.Function, v.Ref.Version, string(v.Status), v.Trigger.Type, null(v.JobID), null(v.RequestID), errorType, message,
		v.StartMS, nullMS(v.EndMS), v.DurationMS, v.CPUMS, v.MemoryPeakBytes, v.EgressBytes, a.Doc,
	}
}

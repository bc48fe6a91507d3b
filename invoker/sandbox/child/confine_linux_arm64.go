package child

// architectureCalls are allowed calls that exist on this architecture alone.
func architectureCalls() []string { return nil }

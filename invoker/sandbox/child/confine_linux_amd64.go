package child

// architectureCalls are allowed calls that exist on this architecture alone.
func architectureCalls() []string { return []string{"epoll_wait"} }
